"""An upgrade never breaks a host: this version takes over what an earlier one left running, and in the end removes all of it.

Each row of commits.toml is a server of an earlier version with a running guest, a Service, a token and a snapshot, which ends; this version
starts on the same directory. Some rows run each time; the others are slow. `UPGRADE_SEED=7` picks others for each time.
"""

import asyncio
import contextlib
import os
import random
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from paddock.base.clock import SystemClock
from paddock.base.images.build import tiny
from paddock.kubernetes.client import kubeconfig
from tests.host.chaos.test_kills import SNAPSHOTS, VMIS, VMS
from tests.host.directories.test_directories import command
from tests.host.guests import Registry, _Files, _RegistryHandler, serving
from tests.host.networks.namespaces import Child, Lab, there
from tests.host.networks.talking import web_ask
from tests.host.networks.test_sharing import left
from tests.host.networks.test_whole import echoes
from tests.host.runs.conftest import Talk, condition, machine
from tests.host.upgrade.earlier import Upgrade, VersionedHost, sources, upgrades

pytestmark = pytest.mark.needs("qemu", "root", "netns", "tun", "nft")
SEED = int(os.environ.get("UPGRADE_SEED", "1"))
SERVICES = "/api/v1/namespaces/default/services"
RESTORES = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinerestores"
TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SECONDS = 240
Data = dict[str, Any]


class Residents:
    """What lives on the host before and after the upgrade."""

    def __init__(self, host: VersionedHost, lab: Lab, image: str, disk: str) -> None:
        self.host, self.lab, self.image, self.disk = host, lab, image, disk
        self.web: Data = {}
        self.node_port, self.token = 0, ""

    async def move_in(self, talk: Talk) -> None:
        """A guest that answers, a Service, a snapshot of a disk, a token."""
        await talk.make(VMS, tiny_machine("web", self.image))
        await talk.make(VMS, stored_machine("db", self.disk))
        spec = {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 7007, "targetPort": 7}]}
        made = await talk.make(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
        self.node_port = int(made["spec"]["ports"][0]["nodePort"])
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self.token = str((await talk.make(TOKENS, asked))["status"]["token"])
        await talk.until(
            f"{VMS}/db", lambda seen: seen.get("status", {}).get("printableStatus") == "Stopped", "its disk is filled", SECONDS
        )
        source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "db"}
        await talk.make(SNAPSHOTS, document("VirtualMachineSnapshot", "s", {"source": source}))
        await talk.until(f"{SNAPSHOTS}/s", lambda seen: seen.get("status", {}).get("readyToUse"), "the snapshot is ready", SECONDS)
        self.web = await self.ready(talk, "web")
        await self.reached(self.web)

    async def check(self, talk: Talk) -> None:
        """Nothing of it has changed, and everything still works."""
        found = await self.ready(talk, "web")
        cards = [[(each["ipAddress"], each["mac"]) for each in seen["status"]["interfaces"]] for seen in (found, self.web)]
        assert cards[0] == cards[1]
        await self.reached(found)
        assert await asyncio.to_thread(self.who) == "system:serviceaccount:default:default"
        # A machine that comes now is on the same network.
        await talk.make(VMS, tiny_machine("new", self.image))
        await self.reached(await self.ready(talk, "new"))
        target = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "db"}
        await talk.make(RESTORES, document("VirtualMachineRestore", "r", {"target": target, "virtualMachineSnapshotName": "s"}))
        await talk.until(f"{RESTORES}/r", lambda seen: seen.get("status", {}).get("complete"), "the snapshot is restored", SECONDS)

    async def ready(self, talk: Talk, name: str) -> Data:
        """The instance, when its guest answers the server."""
        return await talk.until(
            f"{VMIS}/{name}", lambda seen: condition(seen, "Ready").get("status") == "True", "its guest is ready", SECONDS
        )

    async def reached(self, found: Data) -> None:
        """The host reaches the guest: by its address, or by the Service's port where addresses stand for nothing."""
        async with asyncio.timeout(SECONDS):
            while not await self._answers(found):
                await asyncio.sleep(0.2)

    async def _answers(self, found: Data) -> bool:
        if self.host.network == "routed":
            return "HTTP" in await Child(self.lab.host, web_ask(found["status"]["interfaces"][0]["ipAddress"])).done()
        with contextlib.suppress(OSError):
            return await asyncio.to_thread(echoes, self.node_port)
        return False

    def who(self) -> str:
        """Return the user that the token of the earlier version is."""
        access = kubeconfig.find({}, SystemClock(), explicit=self.host.root / "kubeconfig")
        body = orjson.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{access.server}{WHOAMI}", body, headers)
        context = ssl.create_default_context(cafile=str(self.host.root / "pki" / "ca.crt"))
        with urllib.request.urlopen(request, context=context) as answer:
            return str(orjson.loads(answer.read())["status"]["userInfo"]["username"])


def document(kind: str, name: str, spec: Data) -> Data:
    """An object of the snapshots' group."""
    return {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def tiny_machine(name: str, image: str) -> Data:
    """A running machine with the tiny guest, on the pod network."""
    made = machine(name, image, domain={"memory": {"guest": "192Mi"}}, terminationGracePeriodSeconds=0)
    template = made["spec"]["template"]
    template["metadata"] = {"labels": {"app": name}}
    template["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}}]
    template["spec"]["networks"] = [{"name": "default", "pod": {}}]
    template["spec"]["readinessProbe"] = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    return made


def stored_machine(name: str, disk: str) -> Data:
    """A stopped machine with a disk that lasts."""
    made = machine(name, strategy="Halted", volumes=[{"name": "root", "dataVolume": {"name": f"{name}-root"}}])
    storage = {"storage": {"resources": {"requests": {"storage": "8Mi"}}}, "source": {"http": {"url": disk}}}
    made["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": f"{name}-root"}, "spec": storage}]
    return made


def cases() -> Iterator[Any]:
    """Every row; one of each kind of networks runs each time."""
    every, chance = upgrades(), random.Random(SEED)
    each_time = {chance.choice([row for row in every if row.mode == mode]) for mode in ("routed", "user")}
    for row in every:
        yield pytest.param(row, id=str(row), marks=() if row in each_time else pytest.mark.slow)


class Premises:
    """A host in a network namespace of its own, an earlier version, and images."""

    def __init__(self, work: Path, guest: tiny.TinyImage, upgrade: Upgrade) -> None:
        self.work, self.guest, self.mode, self.earlier = work, guest, upgrade.mode, work / "earlier"
        if missing := sources(upgrade.commit, self.earlier):
            pytest.skip(f"needs history: {missing}")
        for each in ("registry", "web", "paddock"):
            (work / each).mkdir()
        (work / "web" / "disk.img").write_bytes(random.Random(SEED).randbytes(1 << 20))

    def play(self, script: Callable[[VersionedHost, Residents], Awaitable[None]]) -> None:
        """Run a script inside."""
        lab = Lab(self.work / "lab")

        async def inside() -> None:
            shelf = Registry(self.work / "registry")
            files = partial(_Files, directory=str(self.work / "web"))
            with serving(type("Handler", (_RegistryHandler,), {"registry": shelf})) as shelf.address, serving(files) as web:
                image = shelf.push("disks/tiny:1", {"disk/tiny.qcow2": self.guest.disk})
                host = VersionedHost(self.work / "paddock", shelf.address, self.mode)
                try:
                    await script(host, Residents(host, lab, image, f"http://{web}/disk.img"))
                finally:
                    host.end()

        try:
            there(lab.host, inside)
        finally:
            lab.close()


def purge(host: VersionedHost) -> None:
    """Remove everything, and look for what is left."""
    # The log of the servers is this test's.
    (host.root / "said").rename(host.root.parent / "said")
    said = command("down", f"--dir={host.root}", "--purge", "--delete-data", "--yes")
    assert said.returncode == 0, said.stderr
    assert (left(), host.qemus(), host.root.exists()) == ([], {}, False)
    assert str(host.root) not in Path(os.environ["PADDOCK_HOST_DIR"], "claims.json").read_text()


@pytest.mark.spec("kubevirt", 108, "upgrade across two releases with running guests")
@pytest.mark.spec("kubevirt", 135, 136)
@pytest.mark.parametrize("upgrade", [*cases()])
def test_an_upgrade_takes_over_what_runs_and_a_purge_leaves_nothing(work: Path, tiny_guest: tiny.TinyImage, upgrade: Upgrade) -> None:
    premises = Premises(work, tiny_guest, upgrade)

    async def script(host: VersionedHost, residents: Residents) -> None:
        host.start_of(premises.earlier)
        async with asyncio.timeout(3 * SECONDS), host.client() as client:
            await residents.move_in(Talk(host, client))
        authority = host.root / "pki" / "ca.crt"
        before, network, key = host.qemus(), left(), authority.read_bytes()
        random.Random(f"{SEED} {upgrade}").choice((host.stop, host.kill))()
        host.start_of(None)
        assert (host.qemus(), authority.read_bytes()) == (before, key)
        # In user mode no guest uses the packet filter's table, whose name may be another now. Elsewhere IPv6 comes beside what is there.
        added = [each for each in left() if each not in network]
        assert host.network == "user" or (set(network) <= {*left()} and all("::" in each for each in added)), added
        async with asyncio.timeout(3 * SECONDS), host.client() as client:
            await residents.check(Talk(host, client))
        assert before.items() <= host.qemus().items(), "the guest runs in the same process"
        purge(host)

    premises.play(script)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["routed", "user"])
def test_guests_that_were_shut_down_start_on_the_version_before(work: Path, tiny_guest: tiny.TinyImage, mode: str) -> None:
    *_, before = (row for row in upgrades() if row.mode == mode and "four digits" in row.reason)
    premises = Premises(work, tiny_guest, before)

    async def script(host: VersionedHost, residents: Residents) -> None:
        host.start_of(None)
        async with asyncio.timeout(3 * SECONDS), host.client() as client:
            await residents.move_in(Talk(host, client))
        said = command("down", f"--dir={host.root}", "--guests", "--purge", "--yes")
        assert said.returncode == 0 and (host.qemus(), left()) == ({}, []), said.stderr
        host.start_of(premises.earlier)
        async with asyncio.timeout(3 * SECONDS), host.client() as client:
            await residents.check(Talk(host, client))
        purge(host)

    premises.play(script)
