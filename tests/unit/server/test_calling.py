"""Webhooks, called over TLS."""

import asyncio
import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from paddock.server.edge.http import HttpResponse
from paddock.server.webhooks import Caller, CallFailed, WebhookAddress, address_of
from tests.coroutines import run_by
from tests.kit.servers.webhooks import HOST, Webhook


class Objects:
    """A few stored objects."""

    def __init__(self, **found: Any) -> None:
        self._found = found

    def get(self, resource: str, namespace: str, name: str) -> Any:
        return self._found.get(resource)

    def list(self, resource: str, namespace: str = "") -> Iterator[Any]:
        yield from self._found.get(resource.partition(".")[0], ())


META = {"name": "hook", "namespace": "ns"}
SERVICE = {"metadata": META, "spec": {"ports": [{"name": "web", "port": 443}]}}
ENDPOINTS = {"metadata": META, "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"name": "web", "port": 9443}]}]}
SLICE = {
    "metadata": {"name": "hook-x", "labels": {"kubernetes.io/service-name": "hook"}},
    "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": False}}, {"addresses": ["10.7.7.7"]}],
    "ports": [{"name": "web", "port": 8443}],
}
BY_SERVICE = {"service": {"namespace": "ns", "name": "hook", "path": "convert"}}
URL = "https://hook.ns.svc:443/convert"


@pytest.mark.parametrize(
    ("objects", "host", "port"),
    [
        ({"services": SERVICE, "endpoints": ENDPOINTS}, "10.1.2.3", 9443),
        ({"services": SERVICE, "endpoints": ENDPOINTS, "endpointslices": [SLICE]}, "10.7.7.7", 8443),
        ({"services": {"metadata": META, "spec": {"type": "ExternalName", "externalName": "hooks.example.com"}}}, "hooks.example.com", 443),
    ],
)
def test_a_service_leads_to_its_endpoints(objects: dict[str, Any], host: str, port: int) -> None:
    assert address_of(BY_SERVICE, Objects(**objects)) == WebhookAddress(URL, host, port, "/convert", "hook.ns.svc")


@pytest.mark.parametrize(
    ("config", "objects", "why"),
    [
        (BY_SERVICE, {}, 'service "hook" not found'),
        (BY_SERVICE, {"services": SERVICE}, 'no endpoints available for service "hook"'),
        ({"service": {**BY_SERVICE["service"], "port": 1}}, {"services": SERVICE}, 'no service port 1 found for service "hook"'),
        ({"url": "http://example.com"}, {}, "a webhook is asked over https only"),
        ({"url": "https://example.com:x/"}, {}, "Port could not be cast to integer value as 'x'"),
        (
            {"service": {"namespace": "ns", "name": "hook\r\nb: c"}},
            {"services": SERVICE, "endpoints": ENDPOINTS},
            "characters",
        ),
    ],
)
def test_an_address_that_leads_nowhere(config: dict[str, Any], objects: dict[str, Any], why: str) -> None:
    with pytest.raises(CallFailed) as said:
        address_of(config, Objects(**objects))
    assert why in said.value.why


def test_a_url_is_taken_apart() -> None:
    config = {"url": "https://example.com:8443/a?b=c", "caBundle": base64.b64encode(b" \n").decode()}
    assert address_of(config, Objects()) == WebhookAddress("https://example.com:8443/a?b=c", "example.com", 8443, "/a?b=c", "example.com")


@pytest.mark.spec("kube-api", 148)
@pytest.mark.parametrize(
    ("given", "sent"),
    [("", "/"), ("/", "/"), ("//hook", "/hook"), ("/a//b/../c/", "/a/c"), ("/a%20b", "/a%20b"), ("/a%0d%0ab", "/a%0D%0Ab")],
)
def test_a_path_is_cleaned_as_kube_apiserver_does(given: str, sent: str) -> None:
    assert address_of({"url": f"https://example.com{given}"}, Objects()).path == sent
    by_service = {"service": {**BY_SERVICE["service"], "path": unquote(given)}}
    assert address_of(by_service, Objects(services=SERVICE, endpoints=ENDPOINTS)).path == sent


@pytest.mark.spec("kube-api", 148)
@run_by(asyncio.run)
async def test_a_bundle_may_hold_the_serving_certificate_itself(tmp_path: Path) -> None:
    caller = Caller()
    async with Webhook(tmp_path, lambda _: {}) as hook:
        served = await asyncio.to_thread(ssl.get_server_certificate, (HOST, hook.port))
        config = {**hook.client_config, "caBundle": base64.b64encode(served.encode()).decode()}
        assert (await caller.post(address_of(config, Objects()), b"{}", 5)).status == 200
        # A definition keeps the lines in which kustomize writes it.
        config["caBundle"] = base64.encodebytes(served.encode()).decode()
        assert (await caller.post(address_of(config, Objects()), b"{}", 5)).status == 200
        await caller.close()


@run_by(asyncio.run)
async def test_a_connection_is_used_again(tmp_path: Path) -> None:
    caller = Caller()
    async with Webhook(tmp_path, lambda said: {"got": said}) as hook:
        address = address_of(hook.client_config, Objects())
        for number in range(3):
            answered = await caller.post(address, b'{"n":%d}' % number, 5)
            assert (answered.status, answered.body) == (200, b'{"got":{"n":%d}}' % number)
        assert len(caller._idle[address]) == 1
        await asyncio.gather(*(caller.post(address, b"{}", 5) for _ in range(4)))
        # The webhook restarts: what lay idle is dead, and nobody notices.
        await hook._server.close(0.1)
        port, hook._server = hook.port, Webhook(tmp_path, hook.answer)._server
        await hook._server.listen(HOST, port)
        assert (await caller.post(address, b"{}", 5)).status == 200
        await caller.close()


@run_by(asyncio.run)
async def test_what_is_idle_is_hung_up_without_waiting_for_the_webhook(tmp_path: Path) -> None:
    async with Webhook(tmp_path, lambda asked: {}) as hook:
        caller = Caller()
        address = address_of(hook.client_config, Objects())
        await caller.post(address, b"{}", 5)
        (connection,) = caller._idle[address]
        socket = connection._transport.get_extra_info("socket")
        assert socket.fileno() >= 0
        await caller.close()
        # sooner than the webhook can say anything
        await asyncio.sleep(0)
        assert socket.fileno() == -1


@run_by(asyncio.run)
async def test_what_can_go_wrong(tmp_path: Path) -> None:
    caller = Caller()
    async with Webhook(tmp_path, lambda _: HttpResponse(500, b"no", ())) as hook, Webhook(tmp_path / "b", lambda _: {}) as other:
        address = address_of(hook.client_config, Objects())
        assert (await caller.post(address, b"{}", 5)).status == 500
        foreign = address_of({**hook.client_config, "caBundle": other.bundle}, Objects())
        with pytest.raises(CallFailed, match="certificate verify failed"):
            await caller.post(foreign, b"{}", 5)
        misnamed = WebhookAddress(address.url, address.host, address.port, "/", "other.example", address.authority)
        with pytest.raises(CallFailed, match="certificate"):
            await caller.post(misnamed, b"{}", 5)
        assert not other.asked
    with pytest.raises(CallFailed, match="onnect"):
        await caller.post(address, b"{}", 5)
    with pytest.raises(CallFailed):
        await caller.post(WebhookAddress(address.url, address.host, address.port, "/", HOST, "no certificate"), b"{}", 5)
    await caller.close()


@run_by(asyncio.run)
async def test_an_answer_that_does_not_come(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await asyncio.sleep(60)

    caller = Caller()
    hook = Webhook(tmp_path, lambda _: {})
    server = await asyncio.start_server(silent, HOST, 0, ssl=hook.tls)
    port = server.sockets[0].getsockname()[1]
    address = address_of({"url": f"https://{HOST}:{port}", "caBundle": hook.bundle}, Objects())
    with pytest.raises(CallFailed, match="no answer within"):
        await caller.post(address, b"{}", 0.2)
    server.close()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"])
@run_by(asyncio.run)
async def test_an_answer_that_breaks_off(tmp_path: Path, answer: bytes) -> None:
    async def brief(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(answer)
        writer.close()

    caller = Caller()
    hook = Webhook(tmp_path, lambda _: {})
    async with await asyncio.start_server(brief, HOST, 0, ssl=hook.tls) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(CallFailed, match="EOF"):
            await caller.post(address_of({"url": f"https://{HOST}:{port}", "caBundle": hook.bundle}, Objects()), b"{}", 5)
