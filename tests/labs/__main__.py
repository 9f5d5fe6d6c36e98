"""`python -m tests.labs slurm`: leave a lab running, for a person to try things on, and say how to stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from tests.labs import gridengine, rabbitmq, slurm, table
from tests.labs.cluster import Cluster

_TRY = {
    "slurm": ["sinfo", "sbatch --wrap hostname", "squeue"],
    "gridengine": ["qhost", "qsub -cwd -b y hostname", "qstat"],
}


_NEEDS = {"slurm": ["slurm"], "gridengine": ["root", "gridengine"], "rabbitmq": ["rabbitmq"]}


def main(kind: str, role: str = "start") -> int:
    if role == "keep":
        return _keep(kind)
    missing = [f"{name}: {found.missing}" for name in _NEEDS[kind] if (found := table.look_up(name)).version is None]
    if missing:
        print("cannot start:", "; ".join(missing), file=sys.stderr)
        return 1
    return _leave_running(kind)


def _leave_running(kind: str) -> int:
    """A keeper of its own session stays; what it has to say ends when it closes its output."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.labs", kind, "keep"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert keeper.stdout
    said = keeper.stdout.read()
    print(said, end="")
    return 0 if said else 1


def _keep(kind: str) -> int:
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    with _make(kind) as lab:
        page = _broker_page(lab) if isinstance(lab, rabbitmq.RabbitLab) else _cluster_page(lab)
        stop = _paragraph("It stays until you stop it:", [f"kill {os.getpid()}"])
        print("\n".join([*page, *stop]), flush=True)
        _close_output()
        asked.wait()
    return 0


def _make(kind: str) -> Cluster | rabbitmq.RabbitLab:
    if kind == "rabbitmq":
        return rabbitmq.RabbitLab()
    if kind == "gridengine":
        return gridengine.GridEngineLab(gridengine.Options(gpus=2))
    accounting = table.look_up("slurmdbd").version is not None
    return slurm.SlurmLab(slurm.Options(accounting=accounting, gpus=2 if os.geteuid() == 0 else 0))


def _cluster_page(lab: Cluster) -> list[str]:
    path = f"{os.path.dirname(sys.executable)}:{lab.env.get('PATH', '')}".rstrip(":")
    variables = [f"export {name}={value}" for name, value in {**lab.env, "PATH": f"{path}:$PATH"}.items()]
    own = [
        f"runyard site add lab --kind {lab.kind} --dir {lab.directory}",
        "runyard site test lab",
        "runyard submit --site lab -- hostname",
    ]
    return [
        f"A {lab.kind} cluster of {len(lab.nodes)} nodes is running in {lab.root}.",
        *_paragraph("In a shell that is to use it:", variables),
        *_paragraph("By its own commands:", _TRY[lab.kind]),
        *_paragraph("By runyard:", own),
    ]


def _broker_page(lab: rabbitmq.RabbitLab) -> list[str]:
    vhost = lab.add_vhost()
    variables = [f"export RUNYARD_BROKER={lab.url(vhost)}"]
    encrypted = [f"export RUNYARD_BROKER={lab.url(vhost, tls=True)}", f"export SSL_CERT_FILE={lab.authority}"]
    return [
        f"A RabbitMQ is running in {lab.root}.",
        *_paragraph("In a shell that is to use it:", variables),
        *_paragraph("Or, with TLS:", encrypted),
        *_paragraph(f"Its own page, for {lab.user} with the password {lab.password}:", [lab.management_url()]),
    ]


def _paragraph(title: str, lines: list[str]) -> list[str]:
    return ["", title, "", *(f"    {line}" for line in lines)]


def _close_output() -> None:
    """Whoever waits for the end of our words goes on, and the terminal is free."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
