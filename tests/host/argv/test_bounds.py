"""QEMU takes the values that admission takes, or a condition gives the reason: values at the bounds of the fields that reach QEMU."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.engine.host import facts
from paddock.engine.host.facts import HostFacts
from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.config import DiskLayer
from paddock.kubernetes.schema.finding import Severity
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.defaults import InstallationDefaults, defaulted
from paddock.kubevirt.translate.config import machine_config
from paddock.kubevirt.translate.resolved import MachineInputs, ResolvedCard, ResolvedHost, ResolvedVolume
from tests.host.argv import conftest
from tests.host.argv.conftest import Start
from tests.host.argv.test_accepted import USER
from tests.unit.kubevirt.kinds.objects import GONE, admitted

pytestmark = pytest.mark.needs("qemu")

_D = "P.domain."
# The longest name of a case.
_NAME = 100
Changes = Mapping[str, Any]


def disk(bus: str, **members: Any) -> Changes:
    """The machine with one disk on a bus."""
    target = {"bus": bus, **members.pop("target", {})}
    return {f"{_D}devices.disks[0]": {"name": "root", "disk": target, **members}}


def disks(count: int, bus: str) -> Changes:
    """The machine with some disks on a bus."""
    names = [f"d{number}" for number in range(count)]
    return {
        f"{_D}devices.disks": [{"name": name, "disk": {"bus": bus}} for name in names],
        "P.volumes": [{"name": name, "emptyDisk": {"capacity": "1Mi"}} for name in names],
    }


def feature(name: str, policy: str = "require") -> Changes:
    return {f"{_D}cpu": {"model": "qemu64", "features": [{"name": name, "policy": policy}]}}


def block(bus: str, logical: int, granularity: int | None = None) -> Changes:
    """The machine with a disk of these blocks."""
    custom = {"logical": logical, "physical": logical, **({} if granularity is None else {"discardGranularity": granularity})}
    return disk(bus, blockSize={"custom": custom})


STARTED: tuple[Changes, ...] = (
    *({f"{_D}memory.guest": size} for size in ("1", "4096", 999_999, "1M", "1000001", "33333333", "999M", "1.1Gi")),
    {f"{_D}memory": GONE, f"{_D}resources": {"requests": {"memory": "1048577"}}},
    {f"{_D}memory": GONE, f"{_D}resources": {"limits": {"memory": "1Ki"}}},
    {f"{_D}firmware": {"uuid": "5D307ca9b3ef428c886106e72d69f223", "serial": "x" * 256}},
    {f"{_D}firmware": {"uuid": "{5d307ca9-b3ef-428c-8861-06e72d69f223}"}},
    {f"{_D}chassis": dict.fromkeys(("manufacturer", "version", "serial", "asset", "sku"), "ä" * 2048)},
    {f"{_D}clock": {"timezone": "Etc/GMT+5"}},
    {f"{_D}cpu": {"sockets": 1, "maxSockets": 100_000}},
    feature("sse4_2"),
    feature("svm", "disable"),
    feature("no-such", "optional"),
    disks(50, "usb"),
    disk("virtio", bootOrder=2**31 - 1),
    block("virtio", 512, 2**32 - 512),
    block("ide", 512, 512),
)
TOLD: tuple[Changes, ...] = (
    {f"{_D}memory": {"guest": "1Gi", "maxGuest": "1Ti"}},
    *({f"{_D}firmware": {"uuid": text}} for text in ("xyz", "5d307ca9")),
    *({f"{_D}chassis": {"asset": text}} for text in ("x" * 70_000, "a\0b")),
    *({f"{_D}clock": {"timezone": text}} for text in ("x" * 3000, "../../etc/passwd", "Europe", " ", "Europe/" + "x" * 250)),
    {f"{_D}machine": {"type": "pc-q35-2.4"}},
    *({f"{_D}cpu": {"model": model}} for model in ("486", "base", "nope", "qemu64,+vmx")),
    *(feature(name) for name in ("vmx", "no-such", "", "a=b,c", "realized")),
    feature("no-such", "disable"),
    {f"{_D}cpu": {"sockets": 256}},
    disks(51, "usb"),
    disks(5, "ide"),
    disk("virtio", bootOrder=2**31),
    disk("ide", target={"readonly": True}),
    block("ide", 4096),
    block("ide", 512, 1024),
    block("virtio", 512, 2**32),
    block("virtio", 512, -512),
    {f"{_D}devices.interfaces[0]": {"name": "default", "masquerade": {}, "bootOrder": 2**40}},
    {f"{_D}ioThreadsPolicy": "supplementalPool", f"{_D}ioThreads": {"supplementalPoolThreadCount": 100_000}},
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> HostFacts:
    """This host."""
    return asyncio.run(facts.collect(tmp_path_factory.mktemp("facts")))


@pytest.fixture(autouse=True)
def seen(host: HostFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command lines are made for what this host has."""
    monkeypatch.setattr(conftest, "view", host.view)


def blank(path: Path) -> DiskLayer:
    """An empty disk."""
    path.write_bytes(bytes(1 << 20))
    return DiskLayer(path, "raw")


def judged(changes: Changes, host: HostFacts, start: Start, work: Path) -> str:
    """Return the stage that refuses a machine: admission, a condition, or none. A refusal by QEMU itself fails the test."""
    found = admitted(changes)
    if any(each.severity is Severity.ERROR for each in found.findings):
        return "admission"
    spec = found.data["spec"]["template"]["spec"]
    instance = msgspec.convert({"metadata": {"name": "vm", "namespace": "ns"}, "spec": spec}, VirtualMachineInstance)
    instance = msgspec.structs.replace(instance, spec=defaulted(instance.spec, InstallationDefaults()))
    qemu = host.qemus["amd64"]
    resolved = MachineInputs(
        volumes={each.name: ResolvedVolume(layer=blank(work / each.name)) for each in instance.spec.volumes or ()},
        cards={each.name: ResolvedCard("02:00:00:00:00:01", USER) for each in instance.spec.domain.devices.interfaces or ()},
        host=ResolvedHost(
            machine_types=qemu.machines,
            processors=qemu.processors,
            cpu_models=qemu.models,
            cpu_features=qemu.features,
            has_timezone=host.has_timezone,
        ),
    )
    result = machine_config(instance, resolved)
    if not result.startable:
        return "condition"
    try:
        start(result.config).end()
    except UnstartableConfig:
        return "condition"
    return ""


def _summary(changes: Changes) -> str:
    """A name that is the same in each process."""
    text = str({path: "gone" if value is GONE else value for path, value in changes.items()})
    return text if len(text) <= _NAME else f"{text[:_NAME]}...{len(text)}"


@pytest.mark.spec("kubevirt", 124)
@pytest.mark.parametrize("changes", STARTED, ids=_summary)
def test_what_is_taken_starts(changes: Changes, host: HostFacts, start: Start, work: Path) -> None:
    assert judged(changes, host, start, work) == ""


@pytest.mark.spec("kubevirt", 124)
@pytest.mark.parametrize("changes", TOLD, ids=_summary)
def test_what_cannot_start_is_told_in_our_words(changes: Changes, host: HostFacts, start: Start, work: Path) -> None:
    assert judged(changes, host, start, work)


def test_a_card_that_not_every_qemu_has(host: HostFacts, start: Start, work: Path) -> None:
    changes = {f"{_D}devices.interfaces[0]": {"name": "default", "masquerade": {}, "model": "igb"}}
    assert bool(judged(changes, host, start, work)) is ("igb" not in host.qemus["amd64"].devices)
