"""An input file of a run, below its inputs directory: given by digest or by URL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from runyard import errors
from runyard.model import fields
from runyard.model.digest import check_digest
from runyard.model.json_schema import listed, record, text
from runyard.model.values import Digest

MOST = 1_000  # of one run
LONGEST_PATH = 1024
LONGEST_URL = 4096
LONGEST_NAME = 255  # bytes, as in file systems

_UNWRITTEN = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")
_SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """A file that the yard has, or one that the agent fetches from a URL. One of the two."""

    to: str  # below the inputs directory
    digest: str = ""
    url: str = ""
    secret: str = ""  # the name of the secret that is sent to the web server

    @classmethod
    def parse(cls, value: object, where: str) -> InputFile:
        given = fields.mapping(value, where, ("digest", "to", "url", "secret"))
        if ("digest" in given) == ("url" in given):
            raise errors.InvalidInput(f"{where}: it has either a digest or a url", "give one of the two")
        if "digest" in given:
            if given.get("secret") is not None:
                raise errors.InvalidInput(f"{where}: a secret needs a url", "leave it out")
            digest = check_digest(given["digest"], f"{where}.digest")
            return cls(digest=digest, to=_path(given.get("to"), f"{where}.to"))
        url = check_url(given["url"], f"{where}.url")
        to = _path(given.get("to") or _last_name(url), f"{where}.to")
        return cls(url=url, to=to, secret=_secret(given.get("secret"), f"{where}.secret"))

    def to_json(self) -> dict[str, Any]:
        if self.digest:
            return {"digest": self.digest, "to": self.to}
        return {"url": self.url, "to": self.to, **({"secret": self.secret} if self.secret else {})}


SCHEMA = listed(
    record(
        {
            "digest": Digest().schema("Of a file that the yard has"),
            "url": text("Instead of a digest: URL to fetch it from", maxLength=LONGEST_URL),
            "secret": text("Name of the site's secret that is sent with the request", maxLength=100),
            "to": text("Path below the inputs directory", minLength=1, maxLength=LONGEST_PATH),
        },
        required=[],
    ),
    maxItems=MOST,
)


def check_url(value: object, where: str) -> str:
    url, parts = fields.web_address(value, where, LONGEST_URL)
    if "@" in parts.netloc:
        raise errors.InvalidInput(f"{where}: it contains a user or a password", "name a secret of the site instead")
    if not url.isascii() or _UNWRITTEN.search(url):
        raise errors.InvalidInput(f"{where}: it has blanks or characters that no URL may have", "write them like %20")
    return url


def shown_url(url: str) -> str:
    """Without the query, which may contain a key."""
    return urlsplit(url)._replace(query="", fragment="").geturl()


def parse(value: object, where: str = "inputs") -> tuple[InputFile, ...]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput(
            f"{where}: must be a list", "write it like: inputs: [{digest: sha256:…, to: data.csv}]"
        )
    fields.at_most(len(value), where, MOST)
    found = tuple(InputFile.parse(item, f"{where}[{index}]") for index, item in enumerate(value))
    check_apart(found)
    return found


def check_apart(inputs: Iterable[InputFile]) -> None:
    """No two at the same path, and none where another needs a directory."""
    taken: set[PurePosixPath] = set()
    for item in inputs:
        path = PurePosixPath(item.to)
        if path in taken:
            raise errors.InvalidInput(f"inputs: two files have the path {item.to!r}", "give each its own path")
        taken.add(path)
    for path in taken:
        if above := taken.intersection(path.parents):
            raise errors.InvalidInput(f"inputs: {str(above.pop())!r} is a file, and {str(path)!r} is below it")


def _last_name(url: str) -> str:
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    if not name:
        raise errors.InvalidInput(f"inputs: {shown_url(url)} has no name for the file", "give one: --input URL=name")
    return name


def _secret(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not _SECRET.fullmatch(value):
        raise errors.InvalidInput(f"{where}: this is not a name of a secret", "name one that the site has")
    return value


def _path(value: object, where: str) -> str:
    text = fields.text(value, where, LONGEST_PATH)
    if text.startswith("/") or ".." in text.split("/"):
        raise errors.InvalidInput(f"{where}: {text!r} leads out of the inputs directory", "use a relative path")
    path = PurePosixPath(text)
    if not path.parts:
        raise errors.InvalidInput(f"{where}: {text!r} is not a file name", "use a relative path, such as data/x.csv")
    if any(len(part.encode()) > LONGEST_NAME for part in path.parts):
        raise errors.InvalidInput(f"{where}: a name in it is longer than {LONGEST_NAME} bytes")
    return str(path)
