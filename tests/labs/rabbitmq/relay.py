"""A program between a client and a broker: what it stands for is the network.

Killed, it is a cable that was pulled and noticed: connections end, and new ones are refused. Stopped (SIGSTOP), it is
one that nobody noticed: connections stay open and nothing comes through. Started with `python -I -S`. With the files of
a certificate and its key it speaks TLS to the client, as the proxy before a server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys


async def main(port: int, target: int, *certificate: str) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))

    server = await asyncio.start_server(join, "127.0.0.1", port, ssl=_context(*certificate) if certificate else None)
    await server.serve_forever()


def _context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
