"""Every rule of docs/spec/kubevirt.md section 2.11: an object that it refuses, at its place and in its words, and one it accepts."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from paddock.base.nearest import nearest
from paddock.kubernetes.admission import admit, admit_change
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.instance import KINDS as VMI_KINDS
from paddock.kubevirt.kinds.instancetype import InstancetypeSpec
from paddock.kubevirt.kinds.preference import PreferenceSpec
from paddock.kubevirt.kinds.virtualmachine import KINDS as VM_KINDS
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.rules import disks as rules_disks
from paddock.kubevirt.rules import instance as rules_instance
from paddock.kubevirt.rules import machine as rules_machine
from paddock.kubevirt.rules import sizing
from paddock.kubevirt.rules.place import HardwareContext, MachinePlace
from tests.unit.kubevirt.kinds import (
    cases_claims,
    cases_disks,
    cases_machine,
    cases_networks,
    cases_placement,
    cases_running,
    cases_size,
    cases_volumes,
)
from tests.unit.kubevirt.kinds.cases import VM, VMI, Case
from tests.unit.kubevirt.kinds.objects import GONE, Changes, admitted, errors, machine, place, warnings

CASES: tuple[Case, ...] = (
    *cases_machine.CASES,
    *cases_size.CASES,
    *cases_placement.CASES,
    *cases_disks.CASES,
    *cases_volumes.CASES,
    *cases_running.CASES,
    *cases_networks.CASES,
    *cases_claims.CASES,
)
EACH = [pytest.param(case, kind, id=f"V{case.number} {case.label} {kind}") for case in CASES for kind in case.kinds]


def refusals(case: Case, kind: str) -> list[Finding]:
    """Return the findings at the place of a case about its bad object."""
    field = place(case.field, kind)
    return [found for found in admitted(case.bad, kind, **case.settings).findings if found.field == field and case.words in found.message]


@pytest.mark.parametrize(("case", "kind"), EACH)
def test_refused_at_its_place_and_accepted_otherwise(case: Case, kind: str) -> None:
    hold(case, kind)


def hold(case: Case, kind: str) -> None:
    """Hold a rule against its case."""
    said = refusals(case, kind)
    assert len(said) == 1, errors(admitted(case.bad, kind, **case.settings))
    assert (said[0].severity, said[0].cause) == (case.severity, case.cause)
    good_settings = case.settings if case.good_settings is None else case.good_settings
    assert errors(admitted(case.good, kind, **good_settings)) == []


# Rules about changes: the old object, the new one, the place and the words.
_SNAPSHOT: dict[str, Any] = {"status.snapshotInProgress": "before-upgrade"}
_RESTORE: dict[str, Any] = {"status.restoreInProgress": "back"}
_MORE = {"P.domain.cpu": {"cores": 2}}
_NODE = {"metadata.labels": {"kubevirt.io/nodeName": "a"}, "metadata.uid": "1"}
CHANGES: tuple[tuple[int, str, Changes, Changes, str, str], ...] = (
    (17, VM, _SNAPSHOT, {**_SNAPSHOT, **_MORE}, "spec", "until snapshot before-upgrade completes"),
    (17, VM, _RESTORE, {**_RESTORE, **_MORE}, "spec", "until restore back completes"),
    (104, VMI, {}, _MORE, "spec", "update of VMI object is restricted"),
    (83, VMI, _NODE, {**_NODE, "metadata.labels": {"kubevirt.io/nodeName": "b"}}, "metadata.labels", "reserved"),
    (83, VMI, _NODE, {"metadata.uid": "1"}, "metadata.labels", "reserved"),
)


def changed(kind: str, old: Changes, new: Changes, **settings: Any) -> list[tuple[str, str]]:
    """Return the refusals of a change."""
    before = admit(machine(old, kind), AdmissionSettings(trusted=True)).value
    assert before is not None
    after = AdmissionSettings(**settings)
    return errors(admit_change(before, admit(machine(new, kind), after), after))


@pytest.mark.parametrize(("number", "kind", "old", "new", "field", "words"), CHANGES)
def test_changes_are_refused(number: int, kind: str, old: Changes, new: Changes, field: str, words: str) -> None:
    hold_change(kind, old, new, field, words)


def hold_change(kind: str, old: Changes, new: Changes, field: str, words: str) -> None:
    """A change is refused at its place, made by a controller it is accepted, and so is no change at all."""
    ((path, message),) = changed(kind, old, new)
    assert path == field
    assert words in message
    assert changed(kind, old, new, trusted=True) == []
    assert changed(kind, old, old) == []


def test_without_snapshots_the_spec_may_change() -> None:
    assert changed(VM, {}, _MORE) == []
    assert changed(VM, _SNAPSHOT, {**_SNAPSHOT, "metadata.labels": {"app": "x"}}) == []
    assert changed(VMI, _NODE, {**_NODE, "metadata.labels": {"kubevirt.io/nodeName": "a", "app": "x"}}) == []


def sized(changes: Changes) -> MachinePlace:
    value = admitted(changes).value
    assert isinstance(value, VirtualMachine)
    return MachinePlace(spec=value.spec, path=("spec",))


_SMALL = from_data({"cpu": {"guest": 1}, "memory": {"guest": "1Gi"}}, InstancetypeSpec)
_LARGE = from_data({"cpu": {"guest": 4}, "memory": {"guest": "8Gi"}}, InstancetypeSpec)


def preference(topology: str = "sockets", **requirements: Any) -> PreferenceSpec:
    return from_data({"cpu": {"preferredCPUTopology": topology}, "requirements": requirements}, PreferenceSpec)


_NAMED = {"spec.instancetype.name": "small", "spec.preference.name": "linux", "P.domain.memory": {}}
# The machine, the preference, the instancetype, the place: first with what is not enough, then with what is.
NEEDS = [
    pytest.param(_NAMED, preference(cpu={"guest": 2}), _SMALL, _NAMED, _LARGE, "spec.instancetype", id="vCPUs of the instancetype"),
    pytest.param(_NAMED, preference(memory={"guest": "2Gi"}), _SMALL, _NAMED, _LARGE, "spec.instancetype", id="memory of the instancetype"),
    pytest.param({}, preference(memory={"guest": "2Gi"}), None, {"P.domain.memory.guest": "2048Mi"}, None, "P.domain.memory", id="memory"),
    pytest.param({}, preference(cpu={"guest": 2}), None, {"P.domain.cpu.sockets": 2}, None, "P.domain.cpu", id="no vCPUs"),
    pytest.param(
        {"P.domain.cpu.sockets": 2},
        preference("cores", cpu={"guest": 2}),
        None,
        {"P.domain.cpu.cores": 2},
        None,
        "P.domain.cpu.cores",
        id="cores",
    ),
    pytest.param(
        {"P.domain.cpu.cores": 2},
        preference("preferSpread", cpu={"guest": 4}),
        None,
        {"P.domain.cpu": {"cores": 2, "sockets": 2}},
        None,
        "P.domain.cpu.sockets",
        id="spread",
    ),
    pytest.param({}, preference(architecture="arm64"), None, {"P.architecture": "arm64"}, None, "P.architecture", id="architecture"),
]


@pytest.mark.parametrize(("bad", "wants", "little", "good", "enough", "field"), NEEDS)
def test_needs_of_a_preference(
    bad: Changes, wants: PreferenceSpec, little: InstancetypeSpec | None, good: Changes, enough: InstancetypeSpec | None, field: str
) -> None:
    (found,) = sizing.unmet(sized(bad), wants, little)
    assert (found.field, found.cause, found.rule) == (place(field, VM), CauseType.NOT_FOUND, "kubevirt/V16")
    assert "failure checking preference requirements" in found.message
    assert list(sizing.unmet(sized(good), wants, enough)) == []


@pytest.mark.parametrize(
    ("written", "wants", "said"),
    [
        (
            {"P.domain.cpu.cores": 2},
            preference("preferCores", cpu={"guest": 4}),
            "CPU resources of 2 vCPU provided by VirtualMachine, preference requires 4 vCPU provided as cores",
        ),
        ({}, preference(memory={"guest": "64Gi"}), "Memory resources of 1Gi provided by VirtualMachine, preference requires 64Gi"),
    ],
)
def test_needs_are_told_in_kubevirts_words(written: Changes, wants: PreferenceSpec, said: str) -> None:
    (found,) = sizing.unmet(sized(written), wants, None)
    assert found.message == f"Not found: failure checking preference requirements: insufficient {said}"


_GIVES: dict[str, Any] = {
    "cpu": {"guest": 2, "model": "host-passthrough", "dedicatedCPUPlacement": True},
    "memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}},
    "gpus": [{"name": "g", "deviceName": "x/y"}],
    "nodeSelector": {"zone": "a"},
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("P.domain.cpu.model", "host-model"),
        ("P.domain.cpu.dedicatedCpuPlacement", True),
        ("P.domain.memory.hugepages", {"pageSize": "1Gi"}),
        ("P.domain.devices.gpus", [{"name": "h", "deviceName": "x/z"}]),
        ("P.nodeSelector", {"zone": "b"}),
    ],
)
def test_what_an_instancetype_gives_a_machine_may_not_say(field: str, value: Any) -> None:
    where = sized({"spec.instancetype.name": "large", "P.domain.memory": {}, field: value})
    (found,) = sizing.conflicts(where, from_data(_GIVES, InstancetypeSpec))
    assert found.field == place(field, VM)
    assert "conflicts with selected instance type" in found.message
    assert list(sizing.conflicts(where, _SMALL)) == []


def test_what_every_instancetype_gives_conflicts_with_every_one() -> None:
    given = {"P.domain.cpu.sockets": 2, "P.domain.memory.guest": "128Mi", "P.domain.resources.limits.cpu": "2"}
    found = sizing.conflicts(sized({"spec.instancetype": {"name": "large"}, **given}), _SMALL)
    assert [each.field for each in found] == [place(field, VM) for field in given]


def test_an_instancetype_that_may_not_be_found_conflicts_with_nothing() -> None:
    infer = {"spec.instancetype": {"inferFromVolume": "root", "inferFromVolumeFailurePolicy": "Ignore"}}
    assert errors(admitted(infer)) == []


def test_gates_that_kubevirt_has_open_are_open() -> None:
    claimed = {
        "P.domain.devices.gpus": [{"name": "g", "claimName": "c", "requestName": "r"}],
        "P.resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
    }
    assert errors(admitted({"P.domain.rebootPolicy": "Terminate"})) == []
    assert errors(admitted({**claimed, "P.domain.rebootPolicy": "Terminate"}, target="cluster")) == []
    # No host has claims, but the machine says so when it starts.
    assert errors(admitted(claimed)) == []


@pytest.mark.spec("kubevirt", 61)
def test_every_rule_has_its_pair() -> None:
    """The whole table at once: each number has a refused object with its field path, and an accepted counterpart."""
    numbers = set()
    for case in CASES:
        for kind in case.kinds:
            hold(case, kind)
        numbers.add(case.number)
    for number, kind, old, new, field, words in CHANGES:
        hold_change(kind, old, new, field, words)
        numbers.add(number)
    for need in NEEDS:
        test_needs_of_a_preference(*need.values)  # type: ignore[arg-type]
        numbers.add(16)
    assert numbers == set(range(1, 120))


def test_no_numbered_rule_is_without_a_case() -> None:
    told = {found.rule for case in CASES for kind in case.kinds for found in refusals(case, kind)}
    numbered = {each.id for kinds in (VM_KINDS, VMI_KINDS) for each in kinds[0].rules if each.id.startswith("kubevirt/V")}
    assert numbered <= told


POOL: Path = ("spec", "virtualMachineTemplate", "spec")


def findings(place: MachinePlace) -> list[Finding]:
    of_hardware = (finding for check in rules_instance.CHECKS for finding in check(place.hardware))
    return [*(finding for check in rules_machine.CHECKS for finding in check(place)), *of_hardware]


@pytest.mark.parametrize("case", [case for case in CASES if VM in case.kinds], ids=lambda case: f"V{case.number} {case.label}")
def test_rules_hold_at_any_place(case: Case) -> None:
    value = admitted(case.bad, VM, **case.settings).value
    assert isinstance(value, VirtualMachine)
    settings = AdmissionSettings(**case.settings)
    here = MachinePlace(spec=value.spec, path=("spec",), settings=settings)
    there = msgspec.structs.replace(here, path=POOL)
    moved = [(_moved(found.path), _moved(found.at), found.rule) for found in findings(here)]
    assert [(found.path, found.at, found.rule) for found in findings(there)] == moved


def _moved(path: Path) -> Path:
    return (*POOL, *path[1:]) if path[:1] == ("spec",) else path


# Values that could never run, and the words that refuse them.
NEVER: tuple[tuple[Changes, str], ...] = (
    ({"P.domain.clock": {"timezone": "../x"}}, "must be the name of a time zone"),
    ({"P.domain.clock": {"timezone": "x" * 3000}}, "must be no more than 255 characters"),
    ({"P.domain.chassis": {"asset": "x" * 2049}}, "must be no more than 2048 characters"),
    ({"P.domain.cpu": {"features": [{"name": "a=b,c"}]}}, "must be the name of a processor feature"),
    ({"P.domain.devices.disks[0]": {"name": "root", "bootOrder": 2**31}}, "must fit into 32 bits"),
    ({"P.domain.ioThreads": {"supplementalPoolThreadCount": 5000}}, "must be less than or equal to 4096"),
    ({"P.domain.devices.disks[0]": {"name": "root", "disk": {"bus": "ide", "readonly": True}}}, "on the ide bus cannot be read-only"),
    ({"P.volumes[0].containerDisk.image": "quay.io/UPPER Bad"}, "must name a container image"),
)


@pytest.mark.spec("kubevirt", 124)
@pytest.mark.parametrize(("changes", "words"), NEVER)
@pytest.mark.parametrize("kind", [VM, VMI])
def test_what_could_never_run_is_refused(changes: Changes, words: str, kind: str) -> None:
    said = [message for _, message in errors(admitted(changes, kind))]
    assert len(said) == 1 and words in said[0], said


# What a template may say, as in KubeVirt, and no running machine can be; and the words that warn of the one and refuse the other.
UNTIL_IT_RUNS: tuple[tuple[Changes, str, str], ...] = (
    ({"P.domain.memory": GONE}, "P.domain.memory", "no memory requested: give memory.guest"),
    ({"P.domain.memory": {}}, "P.domain.memory", "no memory requested: give memory.guest"),
    ({"P.domain.memory": GONE, "P.domain.resources.requests.memory": "0"}, "P.domain.memory", "no memory requested"),
    ({"P.domain.memory.guest": "0"}, "P.domain.memory.guest", "is 0 bytes; a guest needs at least 1M"),
    ({"P.domain.memory.guest": "4096"}, "P.domain.memory.guest", "is 4096 bytes; a guest needs at least 1M; 4096Mi is 4096 megabytes"),
    ({"P.domain.memory.guest": "1Ki"}, "P.domain.memory.guest", "is 1024 bytes; a guest needs at least 1M"),
    (
        {"P.domain.memory": GONE, "P.domain.resources": {"limits": {"memory": "1Ki"}}},
        "P.domain.resources.limits.memory",
        "is 1024 bytes",
    ),
)


@pytest.mark.parametrize(("changes", "field", "words"), UNTIL_IT_RUNS)
def test_a_template_without_memory_is_taken_with_a_warning(changes: Changes, field: str, words: str) -> None:
    template = admitted(changes)
    assert errors(template) == []
    assert [at for at, message in warnings(template) if words in message and "cannot start" in message] == [place(field, VM)]
    ((at, message),) = errors(admitted(changes, VMI))
    assert at == place(field, VMI) and words in message


def test_a_topology_of_zeros_is_none_beside_an_instancetype() -> None:
    none = {"P.domain.memory": GONE, "P.domain.cpu": {"sockets": 0, "cores": 0, "threads": 0}, "spec.instancetype": {"name": "small"}}
    assert errors(admitted(none)) == []
    assert warnings(admitted(none)) == []
    assert warnings(admitted({**none, "P.domain.memory": {"guest": "0"}})) != []


def test_an_instancetype_brings_the_memory() -> None:
    assert warnings(admitted({"P.domain.memory": GONE, "spec.instancetype": {"name": "small"}})) == []


@pytest.mark.parametrize(("name", "meant"), [("rot", "root"), ("elsewhere", "root")])
def test_a_disk_without_a_volume_is_told_which_is_meant(name: str, meant: str) -> None:
    said = errors(admitted({"P.domain.devices.disks[0].name": name}))
    field = "spec.template.spec.domain.devices.disks[0].name"
    assert said == [(field, f'Invalid value: "{name}": no volume of this name; did you mean "{meant}"?')]


def test_many_disks_without_a_volume_are_read_a_few_times_and_get_no_endless_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, compared = 0, 0
    disks = rules_disks.disks

    def counted_disks(place: HardwareContext) -> tuple[tuple[Disk, Path], ...]:
        nonlocal reads
        reads += 1
        return disks(place)

    def counted_nearest(word: str, known: Collection[str]) -> str | None:
        nonlocal compared
        compared += len(known)
        return nearest(word, known)

    monkeypatch.setattr(rules_disks, "disks", counted_disks)
    monkeypatch.setattr(rules_disks, "nearest", counted_nearest)
    volumes = [{"name": f"volume-{each}", "emptyDisk": {"capacity": "1Gi"}} for each in range(100)]
    said = errors(admitted({"P.domain.devices.disks": [{"name": f"disk-{each}"} for each in range(250)], "P.volumes": volumes}))
    assert len(said) == 250
    assert 0 < compared <= 5_000
    assert reads < 30
