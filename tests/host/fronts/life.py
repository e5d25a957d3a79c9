"""The life of an example of a front door, unchanged, on a host of its own: applied, updated, restarted behind our back, deleted.

The host is a network namespace with bridges, services and a packet filter of its own. Images are named by a catalogue (DataSources) or
come through a proxy, both on loopback; further StorageClasses are other names for this host's pool. Nothing else is prepared.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import orjson
import yaml

from paddock.kubernetes import catalog
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.schema.kind import Kind
from tests.host.guests import serving
from tests.host.networks.namespaces import Lab, run, there
from tests.host.runs.conftest import VMIS, VMS, Data, Host, Talk, condition, files_in, phase

SECONDS = 200.0
# A guest of eight processors under Secure Boot takes its time where it is emulated.
BOOT_SECONDS = 500.0
MANAGER = "host-test"
VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
# What may be made for an example, and has to be gone with it.
MADE = (
    VMS,
    VMIS,
    VOLUMES,
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/services",
    "/apis/k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions",
    "/apis/apps/v1/namespaces/default/controllerrevisions",
    "/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools",
    "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines",
    "/apis/vitistack.io/v1alpha1/namespaces/default/machines",
    "/api/v1/persistentvolumes",
)


class FrontHost(Host):
    """A host that promises more memory than it has: what the documents ask for is more than a test's host can give."""

    network = "routed"
    options = ("--memory-overcommit=100",)


class Proxy(SimpleHTTPRequestHandler):
    """Every address of the internet is one file."""

    def __init__(self, *words: Any, disk: Path, sent: list[str], **more: Any) -> None:
        self._disk = disk
        self._sent = sent
        super().__init__(*words, **more)

    def translate_path(self, path: str) -> str:
        """The file, whatever is asked for."""
        return str(self._disk)

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Note what is sent as a whole."""
        if self.command == "GET" and code == HTTPStatus.OK:
            self._sent.append(self.path)


@dataclass(frozen=True)
class Example:
    """A file of examples, and what is looked at in its life."""

    dialect: str
    name: str
    # the machines that come of it
    machines: tuple[str, ...]
    # a change of the front, and what tells that it has arrived
    change: Data
    changed: Callable[["Talk"], Awaitable[bool]]
    # whether its disk has a guest that answers
    has_guest: bool = True
    # names of StorageClasses of elsewhere
    classes: tuple[str, ...] = ()
    # the DataVolumes that come of it, where one download fills all of them
    volumes: tuple[str, ...] = ()

    @property
    def documents(self) -> list[Data]:
        """As they are."""
        text = (catalog.folder(self.dialect) / "examples" / f"{self.name}.yaml").read_text()
        return list(yaml.safe_load_all(text))

    @property
    def front(self) -> Data:
        """The document that is changed and looked at: the last of those that make machines."""
        return [each for each in self.documents if each["kind"] in ("VirtualMachine", "Machine", "VirtualMachinePool")][-1]


def place(document: Mapping[str, Any]) -> str:
    """The path of an object."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = catalog.find(group, document["kind"])
    assert isinstance(kind, Kind)
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    inside = f"/namespaces/{document['metadata'].get('namespace', 'default')}" if kind.namespaced else ""
    return f"{root}{inside}/{kind.plural}/{document['metadata']['name']}"


async def apply(talk: Talk, documents: Sequence[Data]) -> None:
    """Server-side apply, with strict validation."""
    for document in documents:
        query = (("fieldManager", MANAGER), ("fieldValidation", "Strict"))
        body = yaml.safe_dump(document).encode()
        await talk.client.request("PATCH", place(document), query, body, "application/apply-patch+yaml")


def storage_class(name: str) -> Data:
    """Another name for the pool of this host."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "paddock.dev/directory",
        "allowVolumeExpansion": True,
    }


def catalogue(url: str) -> list[Data]:
    """The images of OpenShift's catalogue that the documents name."""
    namespace = "openshift-virtualization-os-images"
    source = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "rhel9", "namespace": namespace}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {**source, "spec": {"source": {"http": {"url": url}}}},
    ]


class Life:
    """One example on its host."""

    def __init__(self, example: Example, host: FrontHost, talk: Talk) -> None:
        self._example = example
        self._host = host
        self._talk = talk

    async def lived(self, prepared: Sequence[Data]) -> None:
        """Everything, in order."""
        await apply(self._talk, [*prepared, *map(storage_class, self._example.classes)])
        before = await self._everything()
        quiet = self._outside()
        await apply(self._talk, self._example.documents)
        for name in self._example.machines:
            await self._talk.running(name, SECONDS)
        assert tuple(await self._runs()) == self._example.machines
        if self._example.volumes:
            found = (await self._talk.get(VOLUMES))["items"]
            assert sorted(each["metadata"]["name"] for each in found) == sorted(self._example.volumes)
        if self._example.has_guest:
            for name in self._example.machines:
                await self._talk.until(f"{VMIS}/{name}", _answers, "its agent answers", BOOT_SECONDS)
        await self._update()
        await self._lose_a_machine()
        await self._lose_paddock()
        await self._delete(before, quiet)

    async def _runs(self) -> dict[str, str]:
        """All machines run, and the front says so; gives the UIDs of the instances."""
        uids = {}
        names = await self._names()
        for name in names:
            uids[name] = (await self._talk.running(name, SECONDS))["metadata"]["uid"]
            await self._talk.until(f"{VMS}/{name}", lambda found: _word(found) == "Running", "the machine says so", SECONDS)
        await self._talk.until(place(self._example.front), partial(_is_well, count=len(names)), "the front says so", SECONDS)
        return uids

    async def _names(self) -> list[str]:
        """There are no machines but the example's."""
        return sorted(each["metadata"]["name"] for each in (await self._talk.get(VMS))["items"])

    async def _update(self) -> None:
        """The changed document is applied; nothing is restarted by it."""
        uids = await self._runs()
        await self._talk.client.request(
            "PATCH", place(self._example.front), body=orjson.dumps(self._example.change), media="application/merge-patch+json"
        )
        async with asyncio.timeout(SECONDS):
            while not await self._example.changed(self._talk):
                await asyncio.sleep(0.1)
        after = await self._runs()
        assert after.items() <= uids.items()

    async def _lose_a_machine(self) -> None:
        """QEMU is killed: the machine is started again."""
        name = (await self._names())[0]
        uid = (await self._talk.get(f"{VMIS}/{name}"))["metadata"]["uid"]
        (pid,) = self._host.qemus()[uid]
        os.kill(pid, signal.SIGKILL)
        await self._talk.until(f"{VMIS}/{name}", lambda found: found.get("metadata", {}).get("uid", uid) != uid, "a new run", SECONDS)
        await self._runs()

    async def _lose_paddock(self) -> None:
        """Paddock is killed and comes back: the same guests run, and nobody wrote to the front's spec."""
        uids, pids = await self._runs(), self._host.qemus()
        generation = (await self._talk.get(place(self._example.front)))["metadata"]["generation"]
        self._host.kill()
        self._host.start()
        async with self._host.client() as client:
            again = Life(self._example, self._host, Talk(self._host, client))
            assert await again._runs() == uids
            found = await again._talk.get(place(self._example.front))
            assert found["metadata"]["generation"] == generation
        assert self._host.qemus() == pids

    async def _delete(self, before: set[str], quiet: list[str]) -> None:
        """All documents are deleted; nothing of them is left anywhere."""
        async with self._host.client() as client:
            talk = Talk(self._host, client)
            for document in reversed(self._example.documents):
                await client.request("DELETE", place(document))
            last = Life(self._example, self._host, talk)
            left: list[str] = []
            try:
                async with asyncio.timeout(SECONDS):
                    while left := await last._left(before, quiet):
                        await asyncio.sleep(0.2)
            except TimeoutError:
                raise AssertionError(f"left: {left}") from None

    async def _left(self, before: set[str], quiet: list[str]) -> list[str]:
        """Return the new leftovers: objects, files, devices, listeners, processes."""
        now = [*(await self._everything() - before), *self._files(), *(each for each in self._outside() if each not in quiet)]
        return [*now, *self._host.qemus()]

    async def _everything(self) -> set[str]:
        """All objects of the kinds that may be made."""
        found = set()
        for path in MADE:
            try:
                found |= {f"{path}/{each['metadata']['name']}" for each in (await self._talk.get(path)).get("items", ())}
            except NotFound:
                continue
        return found

    def _files(self) -> list[str]:
        """Return the files of machines and volumes on disk."""
        return [str(each) for each in files_in(self._host, "machines", "volumes", "scratch", "states")]

    def _outside(self) -> list[str]:
        """Devices, and who listens: what others on the host see. The server itself has another port after each start."""
        devices = [line.split(":")[1].strip() for line in run("ip", "-o", "link").splitlines()]
        # The network of machines stays with the server; its taps go.
        taps = [each for each in devices if each.startswith("pk") and len(each) > len("pkXXXXX")]
        listeners = [line.split()[3] for line in run("ss", "-ltnH").splitlines()]
        return sorted([*taps, *(each for each in listeners if not each.startswith(("127.0.0.1:", "10.")))])


def _is_well(found: Data, count: int) -> bool:
    """Return whether a front of each dialect reports that count machines run."""
    status = found.get("status", {})
    if found["apiVersion"].startswith("infrastructure.stakater.com/"):
        return _word({"status": status.get("vm", {})}) == "Running"
    if found["kind"] == "Machine":
        return bool(status.get("phase") == "Running")
    return _word(found) == "Running" or bool(status.get("readyReplicas") == status.get("replicas") == count)


def _word(found: Data) -> str:
    return str(found.get("status", {}).get("printableStatus", ""))


def _answers(found: Data) -> bool:
    return condition(found, "AgentConnected").get("status") == "True" and phase(found) == "Running"


def live(example: Example, work: Path, disk: Path) -> None:
    """The whole life, in a namespace of its own."""
    lab = Lab(work / "lab")

    async def script() -> None:
        sent: list[str] = []
        with serving(partial(Proxy, disk=disk, sent=sent)) as proxy:
            os.environ.update(http_proxy=f"http://{proxy}", no_proxy="127.0.0.1")
            host = FrontHost(work / "host", "127.0.0.1:1")
            host.root.mkdir()
            host.start()
            try:
                async with host.client() as client:
                    await Life(example, host, Talk(host, client)).lived(catalogue(f"http://{proxy}/rhel9.qcow2"))
                assert not example.volumes or len(sent) == 1, sent
            except BaseException as error:
                raise AssertionError((work / "host" / "said").read_text()[-4000:]) from error
            finally:
                host.end()

    try:
        there(lab.host, script)
    finally:
        lab.close()
