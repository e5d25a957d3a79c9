"""A webhook for tests: an HTTPS server on loopback with a certificate of its own authority.

async with Webhook(tmp_path, answer) as hook:
    config = hook.client_config          # {"url": ..., "caBundle": ...}
    ...
    assert hook.asked[0]["request"]
"""

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from paddock.server.edge.http import Answer, HttpRequest, HttpResponse
from paddock.server.edge.limits import ConnectionLimits
from paddock.server.edge.server import Server
from paddock.server.security.pki import Authority

# Takes the review that was sent, gives the review to answer with; or a complete answer.
Answering = Callable[[dict[str, Any]], dict[str, Any] | HttpResponse]
HOST = "127.0.0.1"


class Webhook:
    """Answers every POST with what `answer` makes of its body."""

    def __init__(self, folder: Path, answer: Answering, *, names: tuple[str, ...] = (HOST,)) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self._authority = Authority(folder / "webhook-pki")
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(*self._authority.server(names))
        self._server = Server(self._handle, tls=self.tls, limits=ConnectionLimits(body_bytes=64 * 1024 * 1024))
        self.port = 0

    async def __aenter__(self) -> "Webhook":
        self.port = await self._server.listen(HOST, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close(0.1)

    @property
    def bundle(self) -> str:
        """The authority as a caBundle."""
        return base64.b64encode(self._authority.certificate).decode()

    @property
    def client_config(self) -> dict[str, Any]:
        """The client configuration of this webhook."""
        return {"url": f"https://{HOST}:{self.port}/ask", "caBundle": self.bundle}

    async def _handle(self, request: HttpRequest) -> Answer:
        said = orjson.loads(request.body)
        self.asked.append(said)
        answer = self.answer(said)
        if isinstance(answer, HttpResponse):
            return answer
        return HttpResponse(200, orjson.dumps(answer), (("content-type", "application/json"),))
