"""Rodan's requests, and the replies that it waits for."""

from __future__ import annotations

from runyard import errors
from runyard.bridges.rodan import answers, ports, settings
from runyard.model import json_text
from runyard.model.request import Format, Incoming, Outcome, Params, Sender

PARTS = ("inputs", "settings")


class Rodan:
    """`{"inputs": {port: path}, "settings": {label: value}}` in, `{port: base64}` or `{"error": text}` out.

    The parameters are the request as it came, and `mail` (`user` and `type`) where it names an address.
    """

    def identify(self, message: Incoming) -> Sender:
        return Sender.of(message)

    def read(self, message: Incoming, largest: int) -> tuple[list[Params], bool]:
        body = json_text.parse_object(message.body)
        for name in body:
            if name not in PARTS:
                raise errors.InvalidInput(f"the request has {name!r}; it has inputs and settings, and nothing else")
        ports.inputs(body.get("inputs"))
        checked = settings.parse(body.get("settings"))
        mail = settings.mail(checked)
        params: Params = {"inputs": body["inputs"], "settings": checked, **({"mail": mail} if mail else {})}
        return [params], False

    def write(self, outcome: Outcome, room: int) -> bytes:
        return answers.write(outcome, room)


_: Format = Rodan()
