"""A small HTTP client that notices exactly what was answered and what was not."""

import asyncio
import base64
import re
import ssl
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import orjson

Data = dict[str, Any]
MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"


class Lost(Exception):
    """The connection ended before the answer was whole: nobody knows what became of the request."""


def context_of(kubeconfig: Path) -> ssl.SSLContext:
    """TLS as the administrator of a kubeconfig."""
    text = kubeconfig.read_text()

    def part(name: str) -> bytes:
        found = re.search(rf'"?{name}"?: *"?([A-Za-z0-9+/=]+)', text)
        assert found, name
        return base64.b64decode(found[1])

    context = ssl.create_default_context(cadata=part("certificate-authority-data").decode())
    credential = kubeconfig.with_name("client.pem")
    credential.write_bytes(part("client-certificate-data") + part("client-key-data"))
    context.load_cert_chain(credential)
    return context


class Client:
    """One connection to a server, made when it is needed."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        self._place = urlsplit(address)
        self._context = context
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection, without ado."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._reader = self._writer = None

    async def ask(self, method: str, path: str, body: Data | list[Data] | None = None, kind: str = "application/json") -> tuple[int, Data]:
        """Status and document of an answer; raises `Lost`."""
        try:
            status, headers = await self._send(method, path, body, kind)
            assert self._reader is not None
            content = await self._reader.readexactly(int(headers["content-length"]))
        except (OSError, EOFError, ssl.SSLError) as error:
            self.close()
            raise Lost(f"{method} {path}: {error!r}") from error
        if headers.get("connection") == "close":
            self.close()
        return status, orjson.loads(content) if headers.get("content-type", "").startswith("application/json") else {"text": content}

    async def watch(self, path: str) -> "Lines":
        """An open stream; raises `Lost`."""
        try:
            status, _ = await self._send("GET", path, None, "application/json")
        except (OSError, EOFError, ssl.SSLError) as error:
            self.close()
            raise Lost(f"watch {path}: {error!r}") from error
        assert status == 200, (status, path)
        assert self._reader is not None
        return Lines(self._reader)

    async def _send(self, method: str, path: str, body: Data | list[Data] | None, kind: str) -> tuple[int, dict[str, str]]:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                self._place.hostname, self._place.port, ssl=self._context, limit=64 * 1024
            )
        content = b"" if body is None else orjson.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._place.netloc}\r\ncontent-length: {len(content)}\r\ncontent-type: {kind}\r\n\r\n"
        self._writer.write(head.encode() + content)
        raw = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in raw[1:] if line)}
        return int(raw[0].split(" ")[1]), headers


class Lines:
    """The lines of a chunked stream."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._rest = b""
        # the stream ended as HTTP says, not by a connection that broke
        self.clean = False

    async def next(self) -> Data | None:
        """The next document; None at the end of the stream, of whatever kind."""
        try:
            while b"\n" not in self._rest:
                size = int(await self._reader.readuntil(b"\r\n"), 16)
                if size == 0:
                    self.clean = not self._rest
                    return None
                self._rest += (await self._reader.readexactly(size + 2))[:-2]
        except (OSError, EOFError, ssl.SSLError):
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        document: Data = orjson.loads(line)
        return document
