"""The paths that images are sent to, as CDI's upload proxy has them.

HEAD says whether a token is good; POST sends. The plain paths answer when the volume is there, the -async ones when all bytes are.
A transfer that breaks leaves the claim as it was: ready for another.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from paddock.app.uploads.tokens import TokenClaims, UploadTokens
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.storage.transfers import TransferBlocked
from paddock.kubevirt.controllers.storage.uploads import NotATarget, UploadTargets
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse
from paddock.server.edge.requestbody import BodyInterrupted, RequestBody

_LOG = logging.getLogger(__name__)
PREFIXES = (b"/v1beta1/upload", b"/v1alpha1/upload")
_PATHS = {
    f"/{version}/{path}": (path.endswith("-async"), "-form" in path)
    for version in ("v1beta1", "v1alpha1")
    for path in ("upload", "upload-async", "upload-form", "upload-form-async")
}
_CORS = (
    ("access-control-allow-origin", "*"),
    ("access-control-allow-headers", "Authorization, Content-Type"),
    ("access-control-allow-methods", "GET, HEAD, OPTIONS, POST, PUT"),
)
# An image may come out of a pipe, or from a slow disk. Waiting is cheap: a sender needs a token, a claim takes one upload at a time, and an
# upload takes no slot from other transfers.
_SILENT_SECONDS = 300.0
_READY_SECONDS, _LOOK_SECONDS = 10.0, 0.25


class Uploads:
    """Answers requests of the upload paths."""

    def __init__(self, receiving: UploadTargets, tokens: UploadTokens, clock: Clock) -> None:
        self._receiving = receiving
        self._tokens = tokens
        self._clock = clock
        self._running: set[asyncio.Task[None]] = set()

    async def answer(self, request: HttpRequest) -> Answer:
        """The handler of these paths."""
        try:
            return await self._answer(request)
        except _Refusal as refusal:
            return _text(refusal.status, str(refusal))

    async def close(self) -> None:
        """End what is still converted."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _answer(self, request: HttpRequest) -> Answer:
        path = _PATHS.get(request.path)
        if path is None:
            raise _Refusal(404, "404 page not found")
        if request.method == "OPTIONS":
            return _text(200, "")
        claims = self._claims(request)
        if request.method == "HEAD":
            return _text(200, "")
        if request.method not in ("POST", "PUT") or request.incoming is None:
            raise _Refusal(405, "send the image with POST")
        await self._wait_ready(claims)
        request.incoming.be_patient(_SILENT_SECONDS)
        return await self._receive(request, request.incoming, claims, path)

    def _claims(self, request: HttpRequest) -> TokenClaims:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _Refusal(400, "the header Authorization must be: Bearer TOKEN, with the token of an UploadTokenRequest")
        claims = self._tokens.read(token.strip(), self._clock.seconds())
        if claims is None:
            raise _Refusal(401, "the token is not known, or not valid any more; make another UploadTokenRequest")
        return claims

    async def _wait_ready(self, claims: TokenClaims) -> None:
        """The claim may have been made a moment ago."""
        place = Key(claims.namespace, claims.name)
        end = asyncio.get_running_loop().time() + _READY_SECONDS
        while True:
            state = self._receiving.state(place, claims.uid)
            if state == "ready":
                return
            if state == "filled":
                raise _Refusal(409, f"the claim {place} has been uploaded to already")
            if state == "busy":
                raise _Refusal(503, f"an upload into the claim {place} is in progress")
            if asyncio.get_running_loop().time() >= end:
                raise _Refusal(503, f"the claim {place} is not ready for an upload: {state}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _receive(self, request: HttpRequest, incoming: RequestBody, claims: TokenClaims, path: tuple[bool, bool]) -> HttpResponse:
        is_async, is_form = path
        arrived = asyncio.Event()
        chunks = _form(request, incoming) if is_form else _plain(incoming)
        task = asyncio.create_task(
            self._receiving.receive(Key(claims.namespace, claims.name), claims.uid, _noted(chunks, arrived), _length(request, is_form))
        )
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            if is_async:
                await _first(task, arrived)
                if arrived.is_set() and not task.done():
                    task.add_done_callback(_log_end)
                    return _text(200, "")
            await task
        except asyncio.CancelledError:
            # Whoever sent is gone. What has come whole is still converted.
            if not arrived.is_set():
                task.cancel()
            raise
        except BrokenUpload as error:
            raise _Refusal(400, str(error)) from error
        except (TransferBlocked, NotATarget) as error:
            raise _Refusal(503, str(error)) from error
        except PaddockError as error:
            raise _Refusal(400 if isinstance(error, Terminal) else 503, str(error)) from error
        return _text(200, "")


class BrokenUpload(Transient):
    """The uploaded data is incomplete."""


class _Refusal(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def _first(task: "asyncio.Task[None]", arrived: asyncio.Event) -> None:
    """Wait until the transfer ends or all bytes are there."""
    waiting = asyncio.create_task(arrived.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting


def _log_end(task: "asyncio.Task[None]") -> None:
    """The claim says why it failed; nobody waits for the answer."""
    if not task.cancelled() and task.exception() is not None:
        _LOG.warning("upload failed after its last byte arrived", extra={"error": str(task.exception())})


async def _plain(incoming: RequestBody) -> AsyncIterator[bytes]:
    try:
        while piece := await incoming.read():
            yield piece
    except BodyInterrupted as error:
        raise BrokenUpload("the upload ended before its end", why=str(error), fix="send it again") from error


async def _form(request: HttpRequest, incoming: RequestBody) -> AsyncIterator[bytes]:
    from paddock.app.uploads.forms import BadForm, FormFile  # noqa: PLC0415 - loads 13 modules of `email`, and few clients send forms

    try:
        form = FormFile(request.headers.get("content-type", ""))
        async for piece in _plain(incoming):
            found = form.feed(piece)
            if found:
                yield found
        form.finish()
    except BadForm as error:
        raise BrokenUpload("the form cannot be read", why=str(error), fix="send the field file as multipart/form-data") from error


async def _noted(chunks: AsyncIterator[bytes], arrived: asyncio.Event) -> AsyncIterator[bytes]:
    async for piece in chunks:
        yield piece
    arrived.set()


def _length(request: HttpRequest, is_form: bool) -> int | None:
    text = request.headers.get("content-length", "")
    return int(text) if text.isdecimal() and not is_form else None


def _text(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, text.encode(), (("content-type", "text/plain; charset=utf-8"), *_CORS))
