"""Downloads of exports, without sockets and without controllers."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest

from paddock.app.exports.download import Downloads
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound, StatusDetails
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.secret import Secret
from paddock.kubevirt.controllers.exports.sources import ExportSource, ExportSources, ExportUnavailable
from paddock.kubevirt.kinds.export import VirtualMachineExport
from paddock.kubevirt.plan.storage import exports as plan
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse, StreamResponse

TOKEN = "t" * 20
DISK = "/exports/team/out/volumes/root/disk.img"
FOUND = ExportSource((plan.ExportedVolume("root", "id"), plan.ExportedVolume("old", "snap", is_snapshot=True)), {"kind": "VirtualMachine"})


class Cluster:
    """The two objects that are asked for."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    async def get(self, target: Target[Any], key: Key) -> Any:
        if target.kind == "VirtualMachineExport" and key == Key("team", "out"):
            source = {"kind": "VirtualMachine", "name": "web"}
            metadata = {"name": "out", "namespace": "team"}
            return msgspec.convert({"metadata": metadata, "spec": {"source": source}}, VirtualMachineExport)
        if target.kind == "Secret" and self._token is not None:
            return msgspec.convert({"data": {"token": base64.b64encode(self._token.encode()).decode()}}, Secret)
        raise NotFound(404, StatusDetails(message="it is not there"))


class Where:
    """The source of an export."""

    def __init__(self, found: ExportSource | ExportUnavailable) -> None:
        self._found = found

    async def find(self, export: VirtualMachineExport) -> ExportSource | ExportUnavailable:
        return self._found


class Disks:
    """Volumes that say their names, piece by piece."""

    def __init__(self) -> None:
        self.open = 0

    async def export(self, id: str, format: str) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            for piece in (b"volume ", id.encode(), b" ", format.encode()):
                yield piece
        finally:
            self.open -= 1

    def export_snapshot(self, snapshot: str, format: str) -> AsyncIterator[bytes]:
        return self.export(f"snapshot {snapshot}", format)


class Sink:
    """Takes what is sent, and goes after so many pieces."""

    backlog = 0

    def __init__(self, pieces: int = 99) -> None:
        self.data, self._pieces = b"", pieces

    @property
    def closed(self) -> bool:
        return self._pieces <= 0

    def write(self, data: bytes) -> None:
        self.data += data
        self._pieces -= 1

    async def drained(self) -> None:
        return

    async def gone(self) -> None:
        return


def fetch(
    path: str = DISK,
    given: str = TOKEN,
    *,
    method: str = "GET",
    found: ExportSource | ExportUnavailable = FOUND,
    wanted: str | None = TOKEN,
    sink: Sink | None = None,
) -> tuple[int, bytes]:
    async def inside() -> tuple[int, bytes]:
        disks = Disks()
        downloads = Downloads(cast(Client, Cluster(wanted)), cast(ExportSources, Where(found)), cast(Volumes, disks))
        headers = {plan.TOKEN_HEADER: given} if given else {}
        answer = await downloads.answer(HttpRequest(method, path, headers, b"", ConnectionPeer("there")))
        if isinstance(answer, StreamResponse):
            taken = sink or Sink()
            await answer.run(taken)
            assert disks.open == 0
            return answer.status, taken.data
        assert isinstance(answer, HttpResponse)
        return answer.status, bytes(answer.body)

    return asyncio.run(inside())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (DISK, b"volume id raw"),
        (DISK + ".gz", b"volume id gzip"),
        ("/exports/team/out/volumes/old/disk.img", b"volume snapshot snap raw"),
    ],
)
def test_disks_are_sent(path: str, body: bytes) -> None:
    assert fetch(path) == (200, body)
    assert fetch(path, method="HEAD") == (200, b"")


def test_manifests_are_sent() -> None:
    code, body = fetch("/exports/team/out/manifests/all")
    assert code == 200 and msgspec.json.decode(body)["items"] == [{"kind": "VirtualMachine"}]
    code, body = fetch("/exports/team/out/manifests/secret")
    made = msgspec.json.decode(body)
    assert code == 200 and made["stringData"] == {"token": f"{plan.TOKEN_HEADER}:"}
    # The token itself is in nothing that is sent.
    assert TOKEN.encode() not in body


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("given", "wanted"), [("", TOKEN), ("wrong", TOKEN), (TOKEN + "x", TOKEN), ("", ""), (TOKEN, None), ("\xe9", TOKEN)]
)
def test_without_the_token_nothing_is_told(given: str, wanted: str | None, method: str) -> None:
    for path in (DISK, "/exports/team/out/volumes/none/disk.img", "/exports/team/out/manifests/all"):
        assert fetch(path, given, wanted=wanted, method=method)[0] == 401


@pytest.mark.parametrize(
    "path",
    [
        "/exports/team",
        "/exports/team/out",
        "/exports/team/else/volumes/root/disk.img",
        "/exports/other/out/volumes/root/disk.img",
        "/exports/team/out/volumes/none/disk.img",
        "/exports/team/out/volumes/root/disk.qcow2",
        "/exports/team/out/volumes/root/../disk.img",
        "/exports/team/out/manifests/none",
        "/exports/team/out/other/root/disk.img",
    ],
)
def test_what_is_not_there(path: str) -> None:
    assert fetch(path)[0] == 404


def test_a_claim_has_no_manifests() -> None:
    assert fetch("/exports/team/out/manifests/all", found=ExportSource(FOUND.volumes))[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_is_only_fetched(method: str) -> None:
    assert fetch(method=method)[0] == 405


def test_what_is_in_use_is_not_sent() -> None:
    assert fetch(found=ExportUnavailable("InUse", "pvc team/disk is in use")) == (503, b"pvc team/disk is in use")


def test_who_goes_away_is_sent_no_more_and_nothing_stays_open() -> None:
    assert fetch(sink=Sink(pieces=2)) == (200, b"volume id")
