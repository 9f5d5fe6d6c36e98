"""Many small files in one body: for each its digest (32 bytes), its length (8 bytes, big-endian) and its bytes.

Files larger than LARGE are sent alone, so that an interrupted transfer can be resumed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from runyard import errors
from runyard.model.digest import check_digest

LARGE = 8 << 20  # bytes
PACK = 16 << 20  # bytes of files that are collected before a pack is sent
LARGEST_PACK = PACK + LARGE + (1 << 20)  # bytes of a whole body, with its headers
MOST_ASKED = 50_000  # digests in one request
HEADER = 40


def header(digest: str, size: int) -> bytes:
    return bytes.fromhex(check_digest(digest).removeprefix("sha256:")) + size.to_bytes(8, "big")


def pack(contents: Iterable[tuple[str, bytes]]) -> bytes:
    return b"".join(part for digest, data in contents for part in (header(digest, len(data)), data))


def unpack(chunks: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """The files of the body as they arrive. The caller checks the digests."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        yield from _whole_ones(held)
    if held:
        raise _cut()


def _whole_ones(held: bytearray) -> Iterator[tuple[str, bytes]]:
    """Removes the complete files from the start of the buffer."""
    while len(held) >= HEADER:
        digest, size = _read_header(held[:HEADER])
        if len(held) < HEADER + size:
            return
        data = bytes(held[HEADER : HEADER + size])
        del held[: HEADER + size]
        yield digest, data


def parse(body: bytes) -> Iterator[tuple[str, memoryview]]:
    """Like `unpack`, for a complete body, and without copying."""
    whole, start = memoryview(body), 0
    while start < len(whole):
        digest, size = _read_header(whole[start : start + HEADER])
        end = start + HEADER + size
        if end > len(whole):
            raise _cut()
        yield digest, whole[start + HEADER : end]
        start = end


def _read_header(header: bytes | bytearray | memoryview) -> tuple[str, int]:
    if len(header) < HEADER:
        raise _cut()
    digest, size = f"sha256:{header[:32].hex()}", int.from_bytes(header[32:HEADER], "big")
    if size > LARGE:
        raise errors.InvalidInput(f"the pack contains a file of {size} bytes", f"send files over {LARGE} alone")
    return digest, size


def _cut() -> errors.InvalidInput:
    return errors.InvalidInput("the pack ends in the middle of a file", "send it again")


def check_bytes(digest: str, data: bytes) -> None:
    """Raises InvalidInput."""
    found = f"sha256:{hashlib.sha256(data).hexdigest()}"
    if found != digest:
        raise errors.InvalidInput(f"the bytes have the digest {found}, not {digest}")
