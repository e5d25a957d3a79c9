"""`paddock why` with a server: what it asks for, what it may not see, and what it prints."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from paddock.app.localtransport import door
from paddock.base.clock import SystemClock
from paddock.cli.names import NoKind, candidates
from paddock.fleet.diagnosis.explain import explain
from paddock.fleet.diagnosis.scene import ObjectPlace, ObjectSnapshot
from paddock.fleet.servers.serverreader import ObjectUnavailable, ServerReader
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from tests.kit.engine.fakehost import machine
from tests.kit.servers.apiclient import served
from tests.kit.servers.apiharness import Harness
from tests.unit.cli.commands import Answer, paddock
from tests.virtualtime import Clock

MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
SEED = [{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "seed"}}}]
WEB = ObjectPlace("kubevirt.io", "VirtualMachine", "default", "web")


class Denying(LocalTransport):
    """A way to a server that refuses some addresses, and counts."""

    def __init__(self, api: Harness, *refused: str) -> None:
        super().__init__(door(api.api, "ada", ("system:masters",)))
        self._refused = refused
        self.asked: list[TransportRequest] = []

    async def send(self, ask: TransportRequest) -> TransportResponse:
        self.asked.append(ask)
        if any(each in ask.target for each in self._refused):
            status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "ada may not"}
            return TransportResponse(403, {}, json.dumps(status).encode())
        return await super().send(ask)


def looked(
    *refused: str, objects: tuple[tuple[str, Any], ...] = (), ask: str = "vm/web"
) -> tuple[list[ObjectPlace], ObjectSnapshot, list[TransportRequest]]:
    """Return the objects found at a server that refuses some addresses."""

    async def script() -> tuple[list[ObjectPlace], ObjectSnapshot, list[TransportRequest]]:
        async with Harness() as api:
            for path, document in objects:
                reply = await api.post(path, document)
                assert reply.status == 201, reply.data
            transport = Denying(api, *refused)
            async with Client(transport) as client:
                looking = ServerReader(client, Clock())
                found = await looking.find(candidates(ask, "default"))
                scene = await looking.gather(found[0]) if found else ObjectSnapshot(now=0.0)
                return found, scene, transport.asked

    return asyncio.run(script())


SEEDED = (
    (MACHINES, machine(volumes=SEED)),
    ("/api/v1/namespaces/default/secrets", {"metadata": {"name": "seed"}, "stringData": {"a": "very secret"}}),
)


def test_of_secrets_nothing_but_the_metadata_is_asked_for() -> None:
    _, scene, asked = looked(objects=SEEDED)
    secret = scene.objects[ObjectPlace("", "Secret", "default", "seed")]
    assert set(secret) == {"metadata"}
    assert "very secret" not in str(scene)
    assert all("PartialObjectMetadata" in ask.accept for ask in asked if "/secrets/" in ask.target)


def test_few_requests_are_made_and_none_that_changes_anything() -> None:
    _, _, asked = looked(objects=SEEDED)
    assert {ask.method for ask in asked} == {"GET"}
    assert len(asked) == len({ask.target for ask in asked}) <= 12


def test_what_may_not_be_seen_is_noted() -> None:
    found, scene, _ = looked("/secrets/", "/events", objects=SEEDED)
    assert found == [WEB]
    assert {getattr(each, "kind", "Event") for each in scene.blind} == {"Secret", "Event"}
    assert explain(scene, WEB).blind


def test_an_object_that_may_not_be_seen_itself_is_an_error() -> None:
    with pytest.raises(ObjectUnavailable, match="ada may not"):
        looked("/virtualmachines/", objects=SEEDED)


def test_discovery_that_is_refused_is_no_reason_to_give_up() -> None:
    found, _, _ = looked("/apis?", "/apis ", objects=SEEDED)
    assert found == [WEB]


def test_without_a_kind_the_likeliest_object_is_meant() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "web"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    found, _, _ = looked(objects=(*SEEDED, (path, {**claim, "spec": spec})), ask="web")
    assert [each.kind for each in found] == ["VirtualMachine", "PersistentVolumeClaim"]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("vm/web", ("kubevirt.io", "VirtualMachine")),
        ("virtualmachine/web", ("infrastructure.stakater.com", "VirtualMachine")),
        ("virtualmachine.kubevirt.io/web", ("kubevirt.io", "VirtualMachine")),
        ("dv/web", ("cdi.kubevirt.io", "DataVolume")),
        ("PVC/web", ("", "PersistentVolumeClaim")),
        ("m/web", ("vitistack.io", "Machine")),
        ("node/host", ("", "Node")),
        ("web", ("infrastructure.stakater.com", "VirtualMachine")),
    ],
)
def test_kinds_are_named_as_with_kubectl(text: str, first: tuple[str, str]) -> None:
    assert candidates(text, "default")[0].id == first


def test_a_kind_that_nobody_knows_is_told_with_the_nearest() -> None:
    with pytest.raises(NoKind, match="datavolume"):
        candidates("datavolum/web", "default")


class Served:
    """A whole server in a thread of its own, while the command runs in this one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ready, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> "Served":
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(60)

    async def _serve(self) -> None:
        async with served(self.root):
            self._ready.set()
            await asyncio.to_thread(self._end.wait)

    def why(self, *arguments: str) -> Answer:
        return paddock("why", *arguments, "--kubeconfig", str(self.root / "kubeconfig"))


def test_the_command_asks_a_server_over_tls(tmp_path: Path) -> None:
    with Served(tmp_path) as server:
        none = server.why("datasource/none")
        assert none.code == 2
        assert "there is no datasource/none" in none.err
        node = server.why("svc/kubernetes")
        assert (node.code, node.out) == (0, "Service kubernetes is served; nothing is wrong with it.\n")
        data = json.loads(server.why("svc/kubernetes", "-o", "json").out)
        assert data["state"] == "good"


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    answer = paddock("why", "vm/web", "--kubeconfig", str(tmp_path / "none"))
    assert answer.code == 2
    assert "there is no kubeconfig" in answer.err


def posted(root: Path, path: str, document: dict[str, Any]) -> None:
    """Make an object on the server of a directory."""

    async def script() -> None:
        access = kubeconfig.find({}, SystemClock(), explicit=root / "kubeconfig")
        async with Client(Https(access)) as client:
            await client.request("POST", path, body=json.dumps(document).encode())

    asyncio.run(script())


@pytest.mark.spec("kubevirt", 117)
def test_the_command_says_what_it_cannot_judge(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Served(tmp_path) as server:
        # A kind without rules, which says nothing of itself.
        posted(
            tmp_path,
            "/apis/cdi.kubevirt.io/v1beta1/cdis",
            {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "CDI", "metadata": {"name": "own"}, "spec": {}},
        )
        unjudged = server.why("cdi/own")
        assert (unjudged.code, "nothing was found. Not checked: its state" in unjudged.out) == (4, True), unjudged.out
        # The server calls v1 Endpoints deprecated to whoever reads them.
        assert "299" not in server.why("svc/kubernetes").err and "server returned a warning" not in caplog.text
