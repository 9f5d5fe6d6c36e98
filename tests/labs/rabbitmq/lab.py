"""The running thing: an epmd of its own, the nodes, and relays that can be cut."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from tests.labs import waiting
from tests.labs.daemons import ENV, Daemons, LabError
from tests.labs.lab import Lab
from tests.labs.rabbitmq import certificates, configuration, relay
from tests.labs.rabbitmq.configuration import ADMIN, PROGRAMS, Layout, Node, Options
from tests.labs.rabbitmq.management import Management

_EVERYTHING = ".*"
_START_S = 120


class Relay:
    """A way to the broker that can be cut; see `relay.py`."""

    def __init__(self, daemons: Daemons, name: str, target: int) -> None:
        self.port = waiting.free_ports(1)[0]
        self._daemons, self._name, self._target = daemons, name, target
        self.mend()

    def cut(self) -> None:
        """Connections end, and new ones are refused."""
        self._daemons.kill(self._name)

    def freeze(self) -> None:
        """Connections stay open, and nothing comes through."""
        self._daemons.pause(self._name)

    def mend(self) -> None:
        self._daemons.resume(self._name)
        if self._name not in self._daemons.pids():
            command = [sys.executable, "-I", "-S", relay.__file__, str(self.port), str(self._target)]
            self._daemons.spawn(self._name, command)
        waiting.until(lambda: waiting.accepts("127.0.0.1", self.port), f"{self._name} listening")


class RabbitLab(Lab):
    """
    nodes       their names, n1 and so on
    user        an administrator, with `password`
    authority   the file with the authority of the servers' certificates, which no system trusts
    """

    def __init__(self, options: Options | None = None, *, below: Path | None = None) -> None:
        self.options = options or Options()
        self.root = Path(tempfile.mkdtemp(prefix="ry-rabbitmq-", dir=below))
        self.logs = self.root / "log"
        self.logs.mkdir()
        self.user, self.password = ADMIN, secrets.token_urlsafe(12)
        self.layout = self._lay_out()
        self.nodes = [node.name for node in self.layout.nodes]
        self.authority = self.layout.certificates / "authority.pem"
        self._daemons = Daemons(self.logs, leftovers=[self.root])
        self._numbers = itertools.count(1)

    def start(self) -> Self:
        certificates.make(self.layout.certificates)
        configuration.write(self.layout, self.options)
        self._make_cookie()
        # Without one of ours, the first node would leave a daemon behind.
        self._daemons.spawn("epmd", ["epmd", "-port", str(self.layout.epmd_port), "-address", "127.0.0.1"])
        waiting.until(lambda: waiting.accepts("127.0.0.1", self.layout.epmd_port), "epmd listening")
        for node in self.nodes:
            self._spawn(node)
        for node in self.nodes:
            self._wait_ready(node)
        waiting.until(self._is_whole, "the cluster formed", timeout_s=_START_S, every_s=0.1)
        return self

    def stop(self) -> None:
        self._daemons.close()

    def tidy(self) -> None:
        """Every node alive, and nothing left of what tests made."""
        for node in self.nodes:
            self.resume(node)
            if node not in self._daemons.pids():
                self.start_node(node)
        waiting.until(self._is_whole, "the cluster whole", timeout_s=_START_S, every_s=0.1)
        for vhost in self.admin("GET", "vhosts"):
            if vhost["name"] != "/":
                self.admin("DELETE", "vhosts", vhost["name"])
        for user in self.admin("GET", "users"):
            if user["name"] != self.user:
                self.admin("DELETE", "users", user["name"])
        for name in self._daemons.pids():
            if name.startswith("relay"):
                self._daemons.kill(name)

    # Vhosts, users, addresses

    def add_vhost(self) -> str:
        """A fresh one, in which the administrator may do everything."""
        name = f"v{next(self._numbers)}"
        with contextlib.suppress(LabError):  # on a loaded machine a cluster may say that it takes too long
            self.admin("PUT", "vhosts", name)
        waiting.until(
            lambda: self._runs_everywhere(name), f"vhost {name} on every node", timeout_s=_START_S, every_s=0.2
        )
        self._permit(self.user, name)
        return name

    def _runs_everywhere(self, vhost: str) -> bool:
        """A cluster that is busy with it may refuse to answer."""
        with contextlib.suppress(LabError):
            states = self.admin("GET", "vhosts", vhost)["cluster_state"]
            for node in (node for node, state in states.items() if state != "running"):
                self.admin("POST", "vhosts", vhost, "start", node)
            return all(state == "running" for state in states.values())
        return False

    def add_user(
        self, vhost: str, *, configure: str = _EVERYTHING, write: str = _EVERYTHING, read: str = _EVERYTHING
    ) -> tuple[str, str]:
        """A fresh one that may do in this vhost what the patterns match: name and password."""
        name, password = f"u{next(self._numbers)}", secrets.token_urlsafe(12)
        self.admin("PUT", "users", name, body={"password": password, "tags": ""})
        self._permit(name, vhost, configure, write, read)
        return name, password

    def url(
        self, vhost: str, *, node: str = "n1", tls: bool = False, host: str = "localhost", port: int | None = None,
        user: str | None = None, password: str | None = None,
    ) -> str:  # fmt: skip
        """`port` is that of a relay; the password is in it."""
        there = self._node(node)
        login = f"{user or self.user}:{password or self.password}"
        chosen = port or (there.tls_port if tls else there.port)
        return f"amqp{'s' if tls else ''}://{login}@{host}:{chosen}/{quote(vhost, safe='')}"

    def management_url(self) -> str:
        return f"http://127.0.0.1:{self._node('n1').http_port}"

    def admin(self, method: str, *path: str, body: dict[str, Any] | None = None) -> Any:
        """A call of the management API, of any node that lives."""
        node = next((name for name in self.nodes if name in self._daemons.pids()), None)
        if node is None:
            raise LabError("every node is down")
        return self._management(node).ask(method, *path, body=body)

    def queue(self, vhost: str, name: str) -> dict[str, Any]:
        return dict(self.admin("GET", "queues", vhost, name))

    def leader(self, vhost: str, queue: str) -> str:
        """The node that leads a quorum queue, or has a classic one; known a moment after it was declared."""
        node = waiting.until(lambda: self.queue(vhost, queue).get("node"), f"the node of {queue}")
        return str(node).partition("@")[0]

    def drop_connections(self) -> int:
        """Close every client's connection, as an administrator does; how many."""
        names = [connection["name"] for connection in self.admin("GET", "connections")]
        for name in names:
            with contextlib.suppress(LabError):  # it was closed meanwhile
                self.admin("DELETE", "connections", name)
        return len(names)

    @contextlib.contextmanager
    def other_message_size(self, size: int) -> Iterator[None]:
        """The largest message of channels that open meanwhile, as after a restart with another max_message_size."""
        usual = self.options.max_message_size or configuration.USUAL_MESSAGE_SIZE
        self._set("max_message_size", size)
        try:
            yield
        finally:
            self._set("max_message_size", usual)

    def _set(self, name: str, value: int) -> None:
        self._control(self.nodes[0], "eval", f"application:set_env(rabbit, {name}, {value}).")

    # Faults, and their repair

    def pid(self, node: str) -> int:
        return self._daemons.pids()[node]

    def let_queues_settle(self) -> None:
        """A replicated queue whose node is killed in its first second is known afterwards, and answers nobody."""
        time.sleep(1.5)

    def kill(self, node: str) -> None:
        """kill -9."""
        self._daemons.kill(node)

    def start_node(self, node: str, *, empty: bool = False) -> None:
        """`empty`: its disk was lost. What is left of a cluster must forget such a node before it may come back."""
        if empty:
            shutil.rmtree(self._node(node).data)
            self._forget(node)
        self._spawn(node)
        self._wait_ready(node)

    def freeze(self, node: str) -> None:
        """It accepts connections and says nothing, until `resume`."""
        self._daemons.pause(node)

    def resume(self, node: str) -> None:
        self._daemons.resume(node)

    def relay(self, *, node: str = "n1", tls: bool = False) -> Relay:
        there = self._node(node)
        return Relay(self._daemons, f"relay{next(self._numbers)}", there.tls_port if tls else there.port)

    # Preparation

    def _lay_out(self) -> Layout:
        epmd, *ports = waiting.free_ports(1 + 4 * self.options.nodes)
        nodes = tuple(
            self._make_node(number, ports[4 * number : 4 * number + 4]) for number in range(self.options.nodes)
        )
        return Layout(root=self.root, password=self.password, epmd_port=epmd, nodes=nodes)

    def _make_node(self, number: int, ports: list[int]) -> Node:
        name = f"n{number + 1}"
        return Node(
            name=name, directory=self.root / name,
            port=ports[0], tls_port=ports[1], http_port=ports[2], distribution_port=ports[3],
        )  # fmt: skip

    def _make_cookie(self) -> None:
        self.layout.cookie.write_text(secrets.token_hex(16))
        self.layout.cookie.chmod(0o400)

    def _node(self, name: str) -> Node:
        return next(node for node in self.layout.nodes if node.name == name)

    def _management(self, node: str) -> Management:
        return Management(self._node(node).http_port, self.user, self.password)

    def _permit(
        self, user: str, vhost: str, configure: str = _EVERYTHING, write: str = _EVERYTHING, read: str = _EVERYTHING
    ) -> None:
        body = {"configure": configure, "write": write, "read": read}
        self.admin("PUT", "permissions", vhost, user, body=body)

    def _spawn(self, node: str) -> None:
        env = configuration.environment(self.layout, self._node(node), self.options)
        self._daemons.spawn(node, [str(PROGRAMS / "rabbitmq-server")], env)

    def _wait_ready(self, node: str) -> None:
        """Clients are let in last, when everything else is there."""

        def ready() -> bool:
            if node not in self._daemons.pids():
                raise LabError(f"{node} ended while it started")
            return waiting.accepts("127.0.0.1", self._node(node).port) and self._management(node).answers()

        waiting.until(ready, f"{node} ready", timeout_s=_START_S, every_s=0.05)

    def _is_whole(self) -> bool:
        with contextlib.suppress(LabError):  # nodes that have just found each other may refuse to answer
            return len([node for node in self.admin("GET", "nodes") if node["running"]]) == len(self.nodes)
        return False

    def _forget(self, node: str) -> None:
        others = [name for name in self.nodes if name != node and name in self._daemons.pids()]
        if others:
            self._control(others[0], "forget_cluster_node", self._node(node).erlang_name)

    def _control(self, node: str, *words: str) -> None:
        env = {**ENV, **configuration.environment(self.layout, self._node(node), self.options)}
        command = [str(PROGRAMS / "rabbitmqctl"), *words]
        done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=180)
        if done.returncode:
            raise LabError(f"rabbitmqctl {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
