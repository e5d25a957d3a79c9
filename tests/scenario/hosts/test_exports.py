"""Exports on a whole host, from the wish to the bytes and the end."""

import asyncio
import base64

import pytest

from paddock.app.exports.download import Downloads
from paddock.server.edge.http import Answer, ConnectionPeer, HttpRequest, HttpResponse, StreamResponse
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.hosts.snapshotting import conditions, export, exported, snapshot, web


class Sink:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.data, self.closed, self.backlog = b"", False, 0

    def write(self, data: bytes) -> None:
        self.data += data

    async def drained(self) -> None:
        return

    async def gone(self) -> None:
        return


async def fetch(host: FakeHost, url: str, token: str, method: str = "GET") -> tuple[int, bytes]:
    assert host.control.exports is not None
    downloads = Downloads(host.control.program.client, host.control.exports, host.engine.volumes)  # type: ignore[arg-type]  # without files
    path = url.removeprefix("https://here:6443")
    answer: Answer = await downloads.answer(
        HttpRequest(method, path, {"x-kubevirt-export-token": token} if token else {}, b"", ConnectionPeer("there"))
    )
    if isinstance(answer, StreamResponse):
        sink = Sink()
        await answer.run(sink)
        return answer.status, sink.data
    assert isinstance(answer, HttpResponse)
    return answer.status, bytes(answer.body)


async def token_of(host: FakeHost) -> str:
    secret = await host.get("Secret", "v1", (await exported(host))["tokenSecretRef"])
    return base64.b64decode(secret["data"]["token"]).decode()


@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize(
    ("kind", "name", "group"),
    [
        ("PersistentVolumeClaim", "disk", ""),
        ("VirtualMachine", "web", "kubevirt.io"),
        ("VirtualMachineSnapshot", "one", "snapshot.kubevirt.io"),
    ],
)
@played
async def test_export_of_each_source(host: FakeHost, /, kind: str, name: str, group: str) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.make(export(kind, name, group, ttlDuration="10m"))
    await asyncio.sleep(5)
    if kind != "VirtualMachineSnapshot":
        status = await exported(host)
        assert status["phase"] == "Pending" and conditions(status) == {"Ready": "False", "PVCReady": "False"}
        assert "in use" in status["conditions"][0]["message"] and "links" not in status
        assert (await fetch(host, f"/exports/default/out/volumes/{name}/disk.img", await token_of(host)))[0] == 503
        await host.change("web", {"spec": {"runStrategy": "Halted"}})
        await asyncio.sleep(15)
    status = await exported(host)
    assert status["phase"] == "Ready" and conditions(status) == {"Ready": "True", "PVCReady": "True"}
    assert status["links"]["internal"] == status["links"]["external"] and status["links"]["external"]["cert"] == "authority"
    token = await token_of(host)
    assert len(token) == 20
    formats = {each["format"]: each["url"] for each in status["links"]["external"]["volumes"][0]["formats"]}
    of = b"of snapshot" if kind == "VirtualMachineSnapshot" else b"of"
    for each in ("raw", "gzip"):
        code, data = await fetch(host, formats[each], token)
        assert code == 200 and data.startswith(each.encode() + b" " + of)
    assert await fetch(host, formats["raw"], token, "HEAD") == (200, b"")
    assert (await fetch(host, formats["raw"], ""))[0] == (await fetch(host, formats["raw"], "wrong"))[0] == 401
    if kind != "PersistentVolumeClaim":
        urls = {each["type"]: each["url"] for each in status["links"]["external"]["manifests"]}
        assert b'"VirtualMachine"' in (await fetch(host, urls["all"], token))[1]
    # After its time it is gone, with the token.
    await asyncio.sleep(601)
    assert await exported(host) == {}
    assert (await fetch(host, formats["raw"], token))[0] == 404
    await asyncio.sleep(30)
    assert await host.get("Secret", "v1", "export-token-out") == {}
