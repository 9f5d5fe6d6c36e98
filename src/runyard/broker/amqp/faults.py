"""Errors of the broker and its library, as one sentence with a fix.

The texts are RabbitMQ's own, which have been the same from 3.8 to 4.1; an unknown text is quoted.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

from pika import exceptions
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout

from runyard import errors
from runyard.broker.address import BrokerAddress

_FLAGS = re.compile(r"inequivalent arg '(?P<flag>[^']+)' for (?P<kind>\w+) '(?P<name>[^']+)'.*?: (?P<rest>.*)", re.S)
_VALUES = re.compile(r"received (?P<ours>.+?) but current is (?P<theirs>.+)")
_MISSING = re.compile(r"no (?P<kind>queue|exchange) '(?P<name>[^']+)'")
_ACCESS = re.compile(
    r"(?:(?P<permission>\w+) )?access to (?P<kind>\w+) '(?P<name>[^']+)'.* refused for user '(?P<user>[^']+)'"
)
_SIZE = re.compile(r"message size (?P<size>\d+) is larger than (?:configured )?max size (?P<limit>\d+)")
_TRANSIENT = "transient_nonexcl_queues"
_TOO_LATE = (AMQPConnectorStackTimeout, exceptions.ConnectionOpenAborted, TimeoutError)


def of_connection(error: BaseException | None, address: BrokerAddress) -> errors.BrokerError:
    """Why there is no connection, or why it was lost."""
    found = list(_all(error)) if error is not None else []
    for one in found:
        if isinstance(one, (exceptions.ProbableAuthenticationError, exceptions.ProbableAccessDeniedError)):
            return _of_login(str(one.args), address)
        if isinstance(one, ssl.SSLError) and not isinstance(one, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
            return _of_tls(one, address)
        if isinstance(one, socket.gaierror):
            return errors.BrokerUnreachable(
                f"the broker's host {address.host} is not known here: {one.strerror}",
                "check the name in the setting broker",
            )
    return _of_line(found, address)


def _all(error: BaseException) -> Iterator[BaseException]:
    """The library wraps exceptions: the cause is inside."""
    yield error
    inner = [*getattr(error, "exceptions", ()), getattr(error, "exception", None), *error.args]
    for one in inner:
        if isinstance(one, BaseException):
            yield from _all(one)


def _of_login(text: str, address: BrokerAddress) -> errors.BrokerError:
    """Only the broker's own number counts: a connection that breaks at this moment looks the same to the library."""
    if "(403)" in text:
        return errors.BrokerRefused(
            f"the broker {address.host} refuses user {address.user!r}: wrong password, or no such user",
            "set RUNYARD_BROKER_PASSWORD or broker_password_file; on the broker: rabbitmqctl change_password",
        )
    if "(530)" in text and "not found" in text:
        return errors.BrokerRefused(
            f"the broker {address.host} has no vhost {address.vhost!r}",
            f"correct the end of the setting broker, or on the broker: rabbitmqctl add_vhost {address.vhost}",
        )
    if "(530)" in text and "refused for user" in text:
        return errors.BrokerRefused(
            f"user {address.user!r} may not use the vhost {address.vhost!r} of the broker {address.host}",
            f"on the broker: rabbitmqctl set_permissions -p {address.vhost} {address.user} '.*' '.*' '.*'",
        )
    return errors.BrokerUnreachable(f"the broker {address.host} ended the connection at the login: {text}")


def _of_tls(error: ssl.SSLError, address: BrokerAddress) -> errors.BrokerError:
    where = f"{address.host}:{address.port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message or str(error)
        if "mismatch" in reason or "not valid for" in reason:
            fix = "write the host in the setting broker as the certificate names it"
        else:
            fix = "name the file with its authority: broker_ca_file, or the variable SSL_CERT_FILE"
        return errors.BrokerRefused(f"the certificate of the broker {where} is not trusted: {reason.rstrip('.')}", fix)
    return errors.BrokerRefused(
        f"the broker {where} does not speak TLS there: {error.reason or error}",
        "amqps is port 5671 on most brokers; amqp:// is without encryption, usually port 5672",
    )


def _of_line(found: list[BaseException], address: BrokerAddress) -> errors.BrokerError:
    where = f"{address.host}:{address.port}"
    if any(isinstance(one, exceptions.IncompatibleProtocolError) for one in found):
        return errors.BrokerUnreachable(
            f"what listens at {where} ended the connection before it began",
            "a broker with TLS needs amqps:// in the setting; behind a proxy the broker itself may be down",
        )
    if any(isinstance(one, exceptions.AMQPHeartbeatTimeout) for one in found):
        return errors.BrokerUnreachable(f"the broker {where} fell silent", "the network between us may be cut")
    if any(isinstance(one, _TOO_LATE) for one in found):
        return errors.BrokerUnreachable(
            f"the broker {where} does not answer", "check that it runs, and that a firewall lets us through"
        )
    system = next((one for one in found if isinstance(one, OSError) and one.strerror), None)
    if system is not None:
        return errors.BrokerUnreachable(
            f"the broker {where} cannot be reached: {system.strerror}", "check that it runs and listens there"
        )
    closed = next((one for one in found if isinstance(one, exceptions.ConnectionClosed)), None)
    if closed is not None and _TRANSIENT in closed.reply_text:
        return _no_transient_queues()
    if closed is not None:
        return errors.BrokerUnreachable(f"the broker {where} closed the connection: {closed.reply_text}")
    return errors.BrokerUnreachable(f"the connection to the broker {where} is lost")


def _no_transient_queues() -> errors.BrokerRefused:
    """From 4.3 on by default, and it closes the whole connection of a client that declares one."""
    return errors.BrokerRefused(
        "the broker refuses queues that are neither durable nor exclusive",
        f"in its rabbitmq.conf: deprecated_features.permit.{_TRANSIENT} = true",
    )


def of_channel(reason: BaseException) -> errors.RunyardError:
    """Why the broker closed a channel: it is its only way to refuse."""
    if isinstance(reason, exceptions.ConnectionClosedByBroker) and _TRANSIENT in reason.reply_text:
        return _no_transient_queues()
    if not isinstance(reason, exceptions.ChannelClosedByBroker):
        return errors.BrokerUnreachable("the connection to the broker was lost meanwhile")
    text = reason.reply_text
    known = _of_flags(text) or _of_missing(text) or _of_access(text) or _of_size(text)
    return known or _of_rest(reason.reply_code, text)


def _of_flags(text: str) -> errors.RunyardError | None:
    match = _FLAGS.search(text)
    if not match:
        return None
    what = f"{match['kind']} {match['name']}"
    return errors.BrokerRefused(
        f"{what} exists with other flags: {_difference(match['flag'], match['rest'])}",
        "use the flags that it has, or another name; or delete it on the broker, if it is unused",
    )


def _difference(flag: str, rest: str) -> str:
    """`received 'true' but current is 'false'`, or for an argument `received none but current is the value 5 of …`."""
    values = _VALUES.search(rest)
    if not values:
        return f"{flag}: {rest}"
    return f"{flag} is {_value(values['theirs'])} there and {_value(values['ours'])} here"


def _value(text: str) -> str:
    quoted = re.search(r"'([^']*)'", text)
    return quoted[1] if quoted else text.strip()


def _of_missing(text: str) -> errors.RunyardError | None:
    match = _MISSING.search(text)
    if not match:
        return None
    return errors.BrokerRefused(
        f"the broker has no {match['kind']} {match['name']}", "declare it there, or correct the name"
    )


def _of_access(text: str) -> errors.RunyardError | None:
    match = _ACCESS.search(text)
    if not match:
        return None
    return errors.BrokerRefused(
        f"user {match['user']!r} has no permission for the {match['kind']} {match['name']} on the broker",
        "on the broker: rabbitmqctl set_permissions -p VHOST USER CONFIGURE WRITE READ",
    )


def _of_size(text: str) -> errors.RunyardError | None:
    match = _SIZE.search(text)
    if not match:
        return None
    return errors.TooLarge(
        f"a message of {match['size']} bytes is over the broker's limit of {match['limit']}",
        "raise max_message_size in its rabbitmq.conf, or send less",
        limit=int(match["limit"]),
    )


def refused_size(reason: BaseException) -> int | None:
    """The size of the message for which a channel was closed, when that was the reason."""
    match = _SIZE.search(reason.reply_text) if isinstance(reason, exceptions.ChannelClosedByBroker) else None
    return int(match["size"]) if match else None


def is_about_type(reason: BaseException) -> bool:
    """The broker does not support queues of the requested type, or has this one with another type."""
    refusals = (exceptions.ChannelClosedByBroker, exceptions.ConnectionClosedByBroker)
    text = reason.reply_text if isinstance(reason, refusals) else ""
    return "x-queue-type" in text or "feature flag" in text


def _of_rest(code: int, text: str) -> errors.RunyardError:
    if "timed out" in text and "acknowledgement" in text:
        return errors.BrokerUnreachable(
            "the broker took back messages that were not acknowledged in time", "see its setting consumer_timeout"
        )
    return errors.BrokerRefused(f"the broker refuses: {text} ({code})")
