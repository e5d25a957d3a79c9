"""Uploads from the token to the volume, as virtctl does them, without sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import orjson
import pytest

from paddock.app.uploads.endpoint import Uploads
from paddock.app.uploads.requests import GROUP, PLURAL, TokenRequests
from paddock.app.uploads.tokens import UploadTokens
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.edge.requestbody import RequestBody
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.servers.apiharness import Harness
from tests.unit.kubevirt.controllers.storage.conftest import CORE, Data, Host, pvc, stage

TOKENS = f"/apis/{GROUP}/v1beta1/namespaces/default/{PLURAL}"
UPLOAD = "/v1beta1/upload"


class Wire:
    """The part of a connection that `RequestBody` needs."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str) -> None: ...


class Site:
    """A host with its upload paths."""

    def __init__(self, host: Host) -> None:
        self.host = host
        tokens = UploadTokens(b"k" * 32)
        host.api.api.subresources[GROUP, PLURAL, "", "create"] = TokenRequests(host.api.parts, tokens).create
        self.uploads = Uploads(host.storage.receiving, tokens, host.api.clock)

    async def token(self, name: str = "a") -> str:
        """A token, as virtctl asks for it."""
        body = {"apiVersion": f"{GROUP}/v1beta1", "kind": "UploadTokenRequest", "metadata": {"name": "any"}, "spec": {"pvcName": name}}
        reply = await self.host.api.post(TOKENS, body)
        assert reply.status == 201, reply.data
        return str(reply.data["status"]["token"])

    async def call(
        self, method: str, path: str = UPLOAD, body: bytes | None = b"", *, token: str = "", end: str = "", **headers: str
    ) -> HttpResponse:
        """A request; `end` breaks its body off."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["authorization"] = f"Bearer {token}"
        request = HttpRequest(method, path, sent, b"", ConnectionPeer("here"))
        request.incoming = incoming = RequestBody(cast(asyncio.Transport, Wire()), 30.0)
        if body:
            incoming.feed(body)
        if end:
            incoming.fail(end)
        elif body is not None:
            incoming.finish()
        answer = await self.uploads.answer(request)
        assert isinstance(answer, HttpResponse)
        return answer


def play(script: Callable[[Site], Awaitable[Any]]) -> None:
    async def inside() -> None:
        async def with_site(host: Host) -> None:
            site = Site(host)
            await script(site)
            await site.uploads.close()

        async with Harness() as api:
            await stage(api, with_site)

    virtualtime.run(inside())


async def target(host: Host, name: str = "a", **spec: Any) -> None:
    await host.data_volume(name, {"source": {"upload": {}}, "pvc": pvc("1Mi"), **spec})
    await host.settle()


@played_by(play)
async def test_a_disk_is_uploaded(site: Site, /) -> None:
    host = site.host
    await target(host)
    assert await host.phase("a") == "UploadReady"
    notes = (await host.claim("a"))["metadata"]["annotations"]
    assert (notes["cdi.kubevirt.io/storage.pod.ready"], notes["cdi.kubevirt.io/storage.pod.phase"]) == ("true", "Running")
    token = await site.token()
    assert (await site.call("HEAD", "/v1beta1/upload-async", token=token)).status == 200
    answer = await site.call("POST", body=b"disk", token=token)
    assert (answer.status, host.images.uploads) == (200, [b"disk"])
    await host.settle()
    assert (await host.status("a"))["phase"] == "Succeeded" and (await host.status("a"))["progress"] == "100.0%"
    notes = (await host.claim("a"))["metadata"]["annotations"]
    assert (notes["cdi.kubevirt.io/storage.pod.ready"], notes["cdi.kubevirt.io/storage.pod.phase"]) == ("false", "Succeeded")
    assert "UploadSucceeded" in await host.reasons("a")
    assert (await site.call("POST", body=b"disk", token=token)).status == 409
    # nothing of a token is kept
    assert (await host.api.get(TOKENS)).status == 405


@played_by(play)
async def test_a_claim_without_a_data_volume_is_uploaded_to(site: Site, /) -> None:
    host = site.host
    body = {"metadata": {"name": "a", "annotations": {"cdi.kubevirt.io/storage.upload.target": ""}}, "spec": pvc("1Mi")}
    await host.post(f"{CORE}/persistentvolumeclaims", body)
    await host.settle()
    assert (await host.claim("a"))["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.ready"] == "true"
    assert (await site.call("POST", "/v1alpha1/upload-async", b"disk", token=await site.token())).status == 200
    await host.settle()
    assert (await host.claim("a"))["metadata"]["annotations"]["cdi.kubevirt.io/storage.pod.phase"] == "Succeeded"


@played_by(play)
async def test_a_broken_upload_can_be_repeated(site: Site, /) -> None:
    host = site.host
    await target(host)
    answer = await site.call("POST", body=b"di", token=await site.token(), end="the sender has gone")
    assert answer.status == 400 and b"the sender has gone" in answer.body
    await host.settle()
    assert await host.phase("a") == "UploadReady" and await host.volume_of("a") is None
    answer = await site.call("POST", body=b"bad image", token=await site.token())
    assert answer.status == 400 and b"names other files" in answer.body
    await host.settle()
    assert await host.phase("a") == "UploadReady"
    assert "names other files" in (await host.condition("a", "Running"))["message"]
    # the sender goes away without a word
    task = asyncio.create_task(site.call("POST", body=None, token=await site.token()))
    await host.settle(1)
    second = await site.call("POST", body=b"disk", token=await site.token())
    assert second.status == 503 and b"in progress" in second.body
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await host.settle(1)
    assert (await site.call("POST", body=b"disk", token=await site.token())).status == 200
    await host.settle()
    assert await host.phase("a") == "Succeeded"


@played_by(play)
async def test_a_sender_may_be_silent_for_minutes(site: Site, /, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = list[RequestBody]()
    monkeypatch.setattr(RequestBody, "be_patient", noting(bodies, RequestBody.be_patient))
    await target(site.host)
    started = asyncio.get_running_loop().time()
    answer = await site.call("POST", body=None, token=await site.token())
    assert answer.status == 400 and b"nothing came for 300 s" in answer.body
    assert asyncio.get_running_loop().time() - started >= 300
    await site.host.settle()
    upload = asyncio.create_task(site.call("POST", body=None, token=await site.token()))
    for piece in (b"di", b"sk"):
        await asyncio.sleep(290)
        bodies[-1].feed(piece)
    bodies[-1].finish()
    assert (await upload).status == 200 and site.host.images.uploads[-1] == b"disk"


def noting(bodies: list[RequestBody], be_patient: Callable[[RequestBody, float], None]) -> Callable[[RequestBody, float], None]:
    """Return `be_patient` that also notes the body."""

    def note(body: RequestBody, seconds: float) -> None:
        bodies.append(body)
        be_patient(body, seconds)

    return note


@played_by(play)
async def test_who_may_not_is_told_why(site: Site, /) -> None:
    host = site.host
    await target(host)
    assert (await site.call("POST")).status == 400
    assert (await site.call("POST", authorization="Basic abc")).status == 400
    assert (await site.call("POST", token="a.b.c")).status == 401
    assert (await site.call("HEAD", token="a.b.c")).status == 401
    token = await site.token()
    host.api.clock.time += 301
    assert (await site.call("POST", token=token)).status == 401
    assert (await site.call("GET", token=await site.token())).status == 405
    assert (await site.call("GET", "/v1beta1/uploads")).status == 404
    missing = {"apiVersion": f"{GROUP}/v1beta1", "kind": "UploadTokenRequest", "metadata": {}, "spec": {"pvcName": "none"}}
    assert (await host.api.post(TOKENS, missing)).status == 404
    preflight = await site.call("OPTIONS")
    assert preflight.status == 200 and dict(preflight.headers)["access-control-allow-origin"] == "*"


@played_by(play)
async def test_a_claim_that_is_no_target_is_waited_for_and_refused(site: Site, /) -> None:
    host = site.host
    await host.data_volume("a", {"source": {"blank": {}}, "pvc": {**pvc("1Mi"), "storageClassName": "none"}})
    await host.settle()
    started = asyncio.get_running_loop().time()
    answer = await site.call("POST", token=await site.token())
    assert answer.status == 503 and 10 <= asyncio.get_running_loop().time() - started < 11


@pytest.mark.parametrize("path", ["upload-form", "upload-form-async"])
@played_by(play)
async def test_a_form_is_uploaded(site: Site, /, path: str) -> None:
    host = site.host
    await target(host)
    head = b'--line\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    kind = "multipart/form-data; boundary=line"
    token = await site.token()
    assert (await site.call("POST", f"/v1beta1/{path}", head + b"half", token=token, content_type=kind)).status == 400
    answer = await site.call("POST", f"/v1beta1/{path}", head + b"disk\r\n--line--\r\n", token=token, content_type=kind)
    assert (answer.status, host.images.uploads) == (200, [b"disk"])


@played_by(play)
async def test_a_token_is_asked_for_in_the_kinds_own_form(site: Site, /) -> None:
    await target(site.host)
    body: Data = {"apiVersion": f"{GROUP}/v1beta1", "kind": "UploadTokenRequest", "metadata": {}, "spec": {}}
    assert (await site.host.api.post(TOKENS, body)).status == 422
    reply = await site.host.api.post(f"{TOKENS}?dryRun=All", {**body, "spec": {"pvcName": "a"}})
    assert reply.status == 201 and orjson.loads(reply.raw)["status"]["token"] == ""
