"""The ways to Services inside of a cluster: a ready pod, the right certificate, and the errors where there is no way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.base import certificates
from paddock.fleet.moves import ways
from paddock.fleet.moves.sides import MoveSide
from paddock.fleet.moves.ways import NoWay
from paddock.kubernetes.client.errors import BadAccess, NotFound, Unreachable
from paddock.kubevirt.disklinks import DiskLink, HttpLinkChannel, NoUploads
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse
from paddock.server.security.pki import Authority
from tests.coroutines import played_by
from tests.unit.fleet.moves.clusters import FakeCluster
from tests.unit.kubernetes.client.talking import edge, play, serving

Data = dict[str, Any]
NAME = "virt-export-web.default.svc"
SERVICE = "/api/v1/namespaces/default/services/virt-export-web"
CDI = "/api/v1/namespaces/cdi"
CONFIG = "/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config"
TOKENS = "/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/default/uploadtokenrequests"
DISK = bytes(range(256)) * 4096


def service(port: int = 443, target: int | str = "https") -> Data:
    return {
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": port, "targetPort": target}]},
    }


async def disk(request: HttpRequest) -> Answer:
    """Answer with a disk."""
    return HttpResponse(200, DISK if request.path == "/disk.img" else request.path.encode(), (("content-type", "text/plain"),))


class ExportOfCluster:
    """A cluster with one export behind a Service, whose pod has a certificate."""

    def __init__(self, folder: Path, name: str = NAME) -> None:
        self.cluster = FakeCluster()
        self.cluster.objects[SERVICE] = service()
        self.cluster.pods("default", starting=False, ready=True)
        self._authority = Authority(folder)
        self._context = serving(self._authority, [name])

    def link(self, host: str = NAME) -> DiskLink:
        return DiskLink(f"https://{host}/disk.img", self._authority.certificate.decode(), "token", raw_url=f"https://{host}/raw")

    @contextlib.asynccontextmanager
    async def side(self) -> AsyncIterator[MoveSide]:
        async with edge(disk, self._context) as port, self.cluster.side() as side:
            self.cluster.ports = {"ready:8443": port}
            yield side


async def fetched(link: DiskLink) -> bytes:
    return b"".join([piece async for piece in HttpLinkChannel().receive(link)])


async def entered(way: contextlib.AbstractAsyncContextManager[DiskLink]) -> None:
    """Enter a way, and leave it."""
    async with way:
        pass


def run(script: Callable[[], Awaitable[None]]) -> None:
    play(script)


@played_by(run)
async def test_a_ready_pod_leads_to_the_disk_under_the_name_of_its_service(tmp_path: Path) -> None:
    export = ExportOfCluster(tmp_path)
    async with export.side() as side, ways.reachable(side, export.link()) as link:
        assert link.url.startswith("https://127.0.0.1:") and link.tls_name == NAME
        assert link.raw_url.rpartition("/")[0] == link.url.rpartition("/")[0]
        assert await fetched(link) == DISK
        # Each connection has a way of its own.
        assert all(each == DISK for each in await asyncio.gather(fetched(link), fetched(link)))
    with pytest.raises(Unreachable):
        await fetched(link)
    forwards = [each for each in export.cluster.asked if "portforward" in each]
    assert len(forwards) >= 4 and {each.partition("?")[0] for each in forwards} == {"GET /api/v1/namespaces/default/pods/ready/portforward"}
    assert any("labelSelector=a%3Db" in each for each in export.cluster.asked)


@played_by(run)
async def test_a_certificate_of_another_name_is_not_accepted(tmp_path: Path) -> None:
    export = ExportOfCluster(tmp_path, "virt-export-other.default.svc")
    async with export.side() as side, ways.reachable(side, export.link()) as link:
        with pytest.raises(BadAccess, match=f"not valid for '{NAME}'") as caught:
            await fetched(link)
        assert f"the certificate of the export server {NAME} of {side.address} is not trusted" in str(caught.value)
        authority = certificates.describe(export.link().authority)
        assert f"the field cert in status.links of the VirtualMachineExport, which names {authority}" in str(caught.value)


@played_by(run)
async def test_a_pod_that_dies_on_the_way_ends_the_disk(tmp_path: Path) -> None:
    export = ExportOfCluster(tmp_path)
    export.cluster.lives_for, got = len(DISK) // 2, bytearray()

    async def fetch(link: DiskLink) -> None:
        async for piece in HttpLinkChannel().receive(link):
            got.extend(piece)

    async with export.side() as side, ways.reachable(side, export.link()) as link:
        with pytest.raises(Unreachable):
            await fetch(link)
    assert got == DISK[: len(got)] and len(got) < len(DISK)


def _no_pod(cluster: FakeCluster) -> None:
    cluster.pods("default", starting=False)


def _no_port(cluster: FakeCluster) -> None:
    cluster.objects[SERVICE] = service(8080)


def _no_selector(cluster: FakeCluster) -> None:
    cluster.objects[SERVICE]["spec"].pop("selector")


def _no_right(cluster: FakeCluster) -> None:
    cluster.forbidden = {"/api/v1/namespaces/default/pods/ready/portforward"}


def _no_sight(cluster: FakeCluster) -> None:
    cluster.forbidden = {SERVICE}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_no_pod, "Service default/virt-export-web cannot be reached: no pod behind it is ready"),
        (_no_port, "or it has no port 443"),
        (_no_selector, "no pod behind it is ready"),
        (_no_right, "is inside of the cluster only: .*ask for the right to forward ports of pods in namespace default"),
        (_no_sight, "is inside of the cluster only: "),
    ],
)
@played_by(run)
async def test_where_there_is_no_way_the_reason_is_said(tmp_path: Path, change: Callable[[FakeCluster], None], said: str) -> None:
    export = ExportOfCluster(tmp_path)
    change(export.cluster)
    async with export.side() as side:
        with pytest.raises(NoWay, match=said):
            await entered(ways.reachable(side, export.link()))


@played_by(run)
async def test_a_service_that_is_not_there_is_named(tmp_path: Path) -> None:
    export = ExportOfCluster(tmp_path)
    del export.cluster.objects[SERVICE]
    async with export.side() as side:
        with pytest.raises(NotFound, match="virt-export-web"):
            await entered(ways.reachable(side, export.link()))


@played_by(run)
async def test_an_address_from_outside_stays_as_it_is(tmp_path: Path) -> None:
    export = ExportOfCluster(tmp_path)
    async with export.side() as side, ways.reachable(side, export.link("exports.example.test")) as link:
        assert link == msgspec.structs.replace(export.link("exports.example.test"), owner=side.address) and export.cluster.asked == []


# --- uploads ------------------------------------------------------------------------------------------------------------------


@played_by(run)
async def test_an_upload_goes_to_the_proxy_of_the_cluster(tmp_path: Path) -> None:
    """CDI names no address, so the Service does; its authority lies in a ConfigMap."""
    authority, cluster, got = Authority(tmp_path), FakeCluster(), list[tuple[str, str, bytes]]()
    found = {"metadata": {"name": "cdi-uploadproxy", "namespace": "cdi"}}
    cluster.objects = {
        CONFIG: {"status": {}},
        "/api/v1/services": {"metadata": {}, "items": [found]},
        f"{CDI}/services/cdi-uploadproxy": {**found, "spec": service(target=8443)["spec"]},
        f"{CDI}/configmaps/cdi-uploadproxy-signer-bundle": {"data": {"ca-bundle.crt": authority.certificate.decode()}},
        TOKENS: {"status": {"token": "secret"}},
    }
    cluster.pods("cdi", ready=True)

    async def take(request: HttpRequest) -> Answer:
        await request.receive("user")
        got.append((request.path, request.headers["authorization"], request.body))
        return HttpResponse(200, b"")

    async def chunks() -> AsyncIterator[bytes]:
        yield DISK

    async with edge(take, serving(authority, ["cdi-uploadproxy.cdi.svc"])) as port, cluster.side() as side:
        cluster.ports = {"ready:8443": port}
        await ways.try_uploads(side)
        async with ways.upload(side, "web-root") as link:
            assert link.title == f"the upload proxy cdi-uploadproxy.cdi.svc of {side.address}"
            await HttpLinkChannel().send(link, chunks(), len(DISK))
    assert got.pop() == ("/v1beta1/upload", "Bearer secret", DISK)


@pytest.mark.parametrize(
    ("objects", "forbidden", "said"),
    [
        (
            {CONFIG: {"status": {}}, "/api/v1/services": {"metadata": {}, "items": []}},
            set(),
            "CDIConfig names no uploadProxyURL, and you may see no Service",
        ),
        ({CONFIG: {"status": {}}}, {"/api/v1/services", f"{CDI}/services/cdi-uploadproxy"}, "Service cdi/cdi-uploadproxy is inside"),
        (
            {CONFIG: {"status": {}}},
            {"/api/v1/services", f"{CDI}/configmaps/cdi-uploadproxy-signer-bundle"},
            "may not get ConfigMap cdi/cdi-uploadproxy-signer-bundle",
        ),
    ],
)
@played_by(run)
async def test_a_cluster_without_a_way_for_uploads_says_so(objects: dict[str, Data], forbidden: set[str], said: str) -> None:
    cluster = FakeCluster()
    cluster.objects, cluster.forbidden = objects, forbidden
    async with cluster.side() as side:
        with pytest.raises((NoUploads, NoWay), match=said):
            await ways.try_uploads(side)
