"""The address of a message broker and our account there. Its text and its repr never contain the password."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, unquote, urlsplit

from runyard import errors
from runyard.settings import Settings, read_secret

GUEST = "guest"  # RabbitMQ's own account, whose password is its name
_PORTS = {"amqps": 5671, "amqp": 5672}
_FORM = "write it like amqps://user@host/vhost; amqp:// is without encryption"
_HOW_SECRET = "set RUNYARD_BROKER_PASSWORD, or name a file with it: broker_password_file"


@dataclass(frozen=True, kw_only=True)
class BrokerAddress:
    host: str
    port: int
    vhost: str = "/"
    user: str = GUEST
    password: str = field(default=GUEST, repr=False)
    tls: bool = True
    authority: str = ""  # a file with the certificates to trust; empty: those of the system, or of SSL_CERT_FILE

    @classmethod
    def parse(cls, text: str, *, password: str = "", authority: str = "") -> BrokerAddress:
        """`amqp[s]://user[:password]@host[:port]/vhost`; without a scheme it is encrypted. Raises ConfigError.

        `password` is for an address that has none.
        """
        parts = _split(text if "://" in text else f"amqps://{text}")
        user = unquote(parts.username or GUEST)
        secret = unquote(parts.password or "") or password or (GUEST if user == GUEST else "")
        if not secret:
            raise errors.ConfigError(
                f"there is no password for user {user!r} of the broker {parts.hostname}", _HOW_SECRET
            )
        return cls(
            host=str(parts.hostname), port=parts.port or _PORTS[parts.scheme], vhost=_vhost(parts.path),
            user=user, password=secret, tls=parts.scheme == "amqps", authority=authority,
        )  # fmt: skip

    @classmethod
    def of(cls, settings: Settings) -> BrokerAddress:
        """The broker that the settings name."""
        password = settings.broker_password or password_from(settings.broker_password_file)
        return cls.parse(settings.broker, password=password, authority=settings.broker_ca_file)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "amqps" if self.tls else "amqp"
        return f"{scheme}://{quote(self.user)}@{host}:{self.port}/{quote(self.vhost, safe='')}"

    @property
    def place(self) -> tuple[str, int, str]:
        """The vhost and the broker, without the account. A broker has two usual ports, one of them encrypted."""
        return self.host, 0 if self.port in _PORTS.values() else self.port, self.vhost

    def tls_context(self) -> ssl.SSLContext | None:
        """With the system's authorities, or those of SSL_CERT_FILE, unless one is given."""
        if not self.tls:
            return None
        try:
            return ssl.create_default_context(cafile=self.authority or None)
        except (OSError, ssl.SSLError) as error:
            raise errors.ConfigError(
                f"the broker's authority {self.authority} cannot be used: {error.strerror or error}",
                "broker_ca_file names a file of certificates in PEM form",
            ) from None


def password_from(path: str) -> str:
    return read_secret(path, "the broker's password", _HOW_SECRET)


def _split(text: str) -> SplitResult:
    """Errors do not quote the address, which may contain a password."""
    try:
        parts = urlsplit(text)
        _refuse_cut(parts)
        parts.port  # noqa: B018  # raises when it is no port
    except ValueError as error:
        raise errors.ConfigError(f"the broker's address is not valid: {_without_values(error)}", _FORM) from None
    if parts.scheme not in _PORTS:
        raise errors.ConfigError(f"a broker's address begins with amqps:// or amqp://, not {parts.scheme}://", _FORM)
    if not parts.hostname:
        raise errors.ConfigError("the broker's address names no host", _FORM)
    if parts.query or parts.fragment:
        raise errors.ConfigError("the broker's address has something after its vhost, from ? or # on", _FORM)
    return parts


def _refuse_cut(parts: SplitResult) -> None:
    """The host ends at the first of these signs, and a password is then read as a port."""
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise errors.ConfigError(
            "the broker's address has a slash, a ? or a # before its @",
            "write them in a user or a password as %2F, %3F and %23, and an @ as %40",
        )


def _without_values(error: ValueError) -> str:
    """Python's sentence quotes what it could not read."""
    return "its port is no number" if "port" in str(error).lower() else "its host cannot be read"


def _vhost(path: str) -> str:
    """Nothing, `/` and `//` are the vhost `/`; a slash inside a name is written %2F."""
    name = path.removeprefix("/")
    if name in ("", "/"):
        return "/"
    if "/" in name:
        raise errors.ConfigError(f"the broker's vhost {name!r} has a slash", "write a slash inside a vhost as %2F")
    return unquote(name)
