"""Both sides of Rodan that a cluster meets: its HTTP interface, and the job that asks through the broker and waits."""

from __future__ import annotations

from tests.labs.rabbitmq import RabbitLab
from tests.labs.rodan.api import RodanApi
from tests.labs.rodan.job import RodanJobs

__all__ = ["RodanApi", "RodanJobs", "certificate", "credentials"]


def certificate(lab: RabbitLab) -> tuple[str, str]:
    """The broker's own, for `localhost`, and its key."""
    return str(lab.layout.certificates / "server.pem"), str(lab.layout.certificates / "server.key")


def credentials(lab: RabbitLab, api: RodanApi, **changes: str) -> str:
    """The text of the old credentials.env."""
    values = {
        "RABBITMQ_HOST": f"localhost:{lab.layout.nodes[0].tls_port}",
        "RABBITMQ_USER": lab.user,
        "RABBITMQ_PASSWORD": lab.password,
        "RODAN_HOST": api.address,
        "RODAN_USER": api.user,
        "RODAN_PASSWORD": api.password,
        "SSL_CERT_FILE": str(lab.authority),
        **changes,
    }
    return "".join(f"export {name}='{value}'\n" for name, value in values.items())
