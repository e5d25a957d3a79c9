"""The status of a machine, by tables of what is seen."""

from typing import Any

import msgspec
import pytest

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machinespec import MachineStatus
from paddock.dialects.vitistack.plan import problems, report
from paddock.dialects.vitistack.plan.events import news
from paddock.dialects.vitistack.plan.observed import (
    Instance,
    InstanceStatus,
    MachineProblem,
    ObjectName,
    ObservedClaim,
    ObservedDataVolume,
    ObservedFillStatus,
    ObservedMachine,
    ObservedNetwork,
    ObservedNic,
    ObservedStartFailure,
    Vm,
    VmStatus,
)
from paddock.kubernetes.meta.conditions import Condition

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def machine(phase: str | None = None, generation: int = 1, annotations: dict[str, str] | None = None, **spec: Any) -> Machine:
    data = {
        "metadata": {"name": "web", "namespace": "default", "generation": generation, "annotations": annotations},
        "spec": {"template": "small", **spec},
        "status": {"phase": phase} if phase else None,
    }
    return msgspec.convert(data, Machine)


def saying(given: Machine, status: MachineStatus | None) -> Machine:
    return msgspec.structs.replace(given, status=status)


def vm(word: str = "Running", failures: int | None = None, *conditions: Condition) -> Vm:
    failed = ObservedStartFailure(failures) if failures is not None else None
    return Vm(ObjectName("web", "u", "77"), status=VmStatus(word, conditions, failed))


def instance(phase: str = "Running", *addresses: tuple[str, ...]) -> Instance:
    cards = tuple(ObservedNic(f"eth{index}", ipAddresses=each) for index, each in enumerate(addresses))
    return Instance(ObjectName("web"), InstanceStatus(phase, "node", cards))


def conditions(status: MachineStatus) -> dict[str, tuple[str, str | None]]:
    return {each.type: (each.status, each.reason) for each in status.conditions or ()}


def filling(phase: str, reason: str) -> ObservedDataVolume:
    running = Condition(type="Running", status="True" if reason == "Pod is running" else "False", reason=reason)
    return ObservedDataVolume(ObjectName("web-root"), ObservedFillStatus(phase, (running,)))


BOUND = (ObservedClaim("web-root", "Bound"),)
REFUSED = MachineProblem(problems.BACKEND, "no", "machine", fails=True)
NO_NETWORK = MachineProblem(problems.NETWORK, "no net", "network")
GONE = MachineProblem(problems.TEMPLATE, "no template", fails=True)


@pytest.mark.parametrize(
    ("before", "seen", "phase", "ready"),
    [
        (None, {"claims": None}, "Pending", "MachineNotReady"),
        ("Pending", {}, "Pending", "MachineNotReady"),
        ("Pending", {"problem": NO_NETWORK}, "Pending", "NetworkConfigurationNotFound"),
        ("Pending", {"problem": GONE}, "Failed", "TemplateNotFound"),
        ("Pending", {"claims": (ObservedClaim("web-root", "Pending"),)}, "Creating", "MachineNotReady"),
        ("Pending", {"made": True, "claims": BOUND}, "Creating", "MachineNotReady"),
        ("Pending", {"vm": vm(), "instance": instance(), "claims": BOUND}, "Creating", "MachineNotReady"),
        ("Creating", {"vm": vm(), "instance": instance(), "claims": BOUND}, "Running", "MachineReady"),
        ("Creating", {"vm": vm("Stopped"), "claims": BOUND}, "Creating", "MachineNotReady"),
        ("Creating", {"vm": vm("ErrorUnschedulable"), "claims": BOUND}, "Creating", "InsufficientResources"),
        ("Creating", {"vm": vm("DataVolumeError"), "volumes": (filling("Failed", "Error"),)}, "Failed", "KubeVirtApiError"),
        ("Creating", {"vm": vm("DataVolumeError"), "volumes": (filling("ImportInProgress", "Error"),)}, "Creating", "KubeVirtApiError"),
        ("Creating", {"vm": vm("CrashLoopBackOff", 4), "claims": BOUND}, "Creating", "KubeVirtApiError"),
        ("Creating", {"vm": vm("CrashLoopBackOff", 5), "claims": BOUND}, "Failed", "KubeVirtApiError"),
        ("Creating", {"vm": vm(), "instance": instance("Succeeded"), "claims": BOUND}, "Running", "MachineNotReady"),
        ("Running", {"vm": vm("Stopped"), "claims": BOUND}, "Stopped", "MachineStopped"),
        ("Running", {"vm": vm("Stopped"), "instance": instance("Failed"), "claims": BOUND}, "Stopped", "MachineStopped"),
        ("Running", {"vm": vm("Migrating"), "instance": instance(), "claims": BOUND}, "Running", "MachineReady"),
        (
            "Running",
            {"vm": vm(), "instance": instance(), "claims": BOUND, "problem": NO_NETWORK},
            "Running",
            "NetworkConfigurationNotFound",
        ),
        ("Running", {"vm": vm(), "instance": instance(), "claims": BOUND, "problem": REFUSED}, "Failed", "KubeVirtApiError"),
        ("Running", {"vm": vm(), "instance": instance(), "claims": (ObservedClaim("web-root", "Pending"),)}, "Running", "MachineNotReady"),
        ("Stopped", {"vm": vm("Starting"), "instance": instance("Scheduling"), "claims": BOUND}, "Stopped", "MachineStopped"),
        ("Stopped", {"vm": vm(), "instance": instance(), "claims": BOUND}, "Running", "MachineReady"),
        ("Stopped", {"claims": BOUND}, "Stopped", "MachineStopped"),
        ("Failed", {"vm": vm(), "instance": instance(), "claims": BOUND}, "Pending", "MachineNotReady"),
    ],
)
def test_phases_and_reasons(before: str | None, seen: dict[str, Any], phase: str, ready: str) -> None:
    found = report.status(ObservedMachine(machine=machine(before), **seen), NOW)
    assert found.phase == phase
    assert conditions(found)["Ready"][1] == ready
    assert (conditions(found)["Ready"][0] == "True") == (ready == "MachineReady")
    assert list(conditions(found)) == list(report.TYPES)


@pytest.mark.parametrize(
    ("seen", "type", "said"),
    [
        ({"made": True}, "VirtualMachineReady", ("True", "VMCreated")),
        ({}, "VirtualMachineReady", ("False", "VMFailed")),
        ({"problem": REFUSED}, "VirtualMachineReady", ("False", "VMFailed")),
        ({"vm": vm("ErrorUnschedulable")}, "VirtualMachineReady", ("True", "VMCreated")),
        ({"claims": BOUND}, "StorageReady", ("True", "PVCBound")),
        ({"claims": ()}, "StorageReady", ("True", "PVCBound")),
        ({"claims": None}, "StorageReady", ("False", "PVCPending")),
        ({"claims": (ObservedClaim("a", "Bound", lost=True),)}, "StorageReady", ("False", "PVCPending")),
        ({"claims": BOUND, "volumes": (filling("ImportInProgress", "Pod is running"),)}, "StorageReady", ("True", "PVCBound")),
        ({"claims": BOUND, "volumes": (filling("ImportScheduled", "ContainerCreating"),)}, "StorageReady", ("True", "PVCBound")),
        ({"claims": BOUND, "volumes": (filling("ImportInProgress", "RunContainerError"),)}, "StorageReady", ("False", "ImportFailed")),
        ({"claims": BOUND, "volumes": (filling("Failed", "Error"),)}, "StorageReady", ("False", "ImportFailed")),
        ({"claims": BOUND, "volumes": (filling("Succeeded", "Completed"),)}, "StorageReady", ("True", "PVCBound")),
        ({"networks": (ObservedNetwork("a"),)}, "NetworkReady", ("True", "NetworkConfigured")),
        ({"networks": (ObservedNetwork("a", attached=False),)}, "NetworkReady", ("False", "NetworkFailed")),
        ({"networks": (ObservedNetwork("a", found=False),)}, "NetworkReady", ("False", "NetworkFailed")),
        ({"problem": NO_NETWORK}, "NetworkReady", ("False", "NetworkFailed")),
    ],
)
@pytest.mark.spec("vitistack", 67, 95)
def test_conditions(seen: dict[str, Any], type: str, said: tuple[str, str]) -> None:
    found = report.status(ObservedMachine(machine=machine("Creating"), **seen), NOW)
    assert conditions(found)[type] == said
    assert [each.type for each in found.conditions or ()] == ["Ready", "VirtualMachineReady", "StorageReady", "NetworkReady"]


@pytest.mark.spec("vitistack", 67)
def test_conditions_of_others_are_not_kept_and_none_comes_twice() -> None:
    stale = [Condition(type="Old", status="True"), *(Condition(type="Ready", status="False", lastTransitionTime=NOW) for _ in range(3))]
    found = report.status(ObservedMachine(machine=saying(machine(), MachineStatus(phase="Creating", conditions=stale))), LATER)
    assert [each.type for each in found.conditions or ()] == list(report.TYPES)
    # the status of Ready is as it was, so its time is
    assert next(each for each in found.conditions or () if each.type == "Ready").lastTransitionTime == NOW


@pytest.mark.spec("vitistack", 66)
def test_the_date_moves_with_something_else_alone() -> None:
    sight = ObservedMachine(machine=machine("Creating"), vm=vm(), instance=instance("Running", ("10.0.0.2",)), claims=BOUND)
    first = report.status(sight, NOW)
    assert first.lastUpdated == NOW
    second = report.status(msgspec.structs.replace(sight, machine=saying(machine(), first)), LATER)
    assert second == first


@pytest.mark.spec("vitistack", 65)
def test_addresses_are_listed_once_and_by_family() -> None:
    seen = instance("Running", ("fd00::2", "10.0.0.2"), ("10.1.0.2", "fd00::2", "10.0.0.2"))
    assert report.addresses(seen) == ["10.0.0.2", "10.1.0.2", "fd00::2"]
    assert report.addresses(instance("Succeeded", ("10.0.0.2",))) == []
    assert report.addresses(None) == []


def failed(reason: str, generation: int = 1, retry: str | None = None) -> MachineStatus:
    ready = Condition(type="Ready", status="False", reason=reason, observedGeneration=generation)
    return MachineStatus(phase="Failed", conditions=[ready], observedRetry=retry)


@pytest.mark.parametrize(
    ("status", "generation", "annotations", "came", "final"),
    [
        (failed(problems.TEMPLATE), 1, {}, False, True),
        (failed(problems.TEMPLATE), 2, {}, False, False),
        (failed(problems.TEMPLATE), 1, {"vitistack.io/retry": "1"}, False, False),
        (failed(problems.TEMPLATE, retry="1"), 1, {"vitistack.io/retry": "1"}, False, True),
        (failed(problems.TEMPLATE), 1, {}, True, False),
        (failed(problems.BACKEND), 1, {}, True, True),
        (MachineStatus(phase="Creating"), 1, {}, False, False),
        (None, 1, {}, False, False),
    ],
)
def test_failed_is_the_end_for_a_generation(
    status: MachineStatus | None, generation: int, annotations: dict[str, str], came: bool, final: bool
) -> None:
    given = saying(machine(generation=generation, annotations=annotations), status)
    assert report.is_final(given, template_came=came) is final


def test_a_failed_machine_says_what_runs_and_what_was_wrong() -> None:
    given = saying(machine(), failed(problems.BACKEND))
    found = report.failed_status(ObservedMachine(machine=given, vm=vm(), instance=instance("Running", ("10.0.0.2",))), NOW)
    assert (found.phase, found.conditions, found.ipAddresses) == ("Failed", failed(problems.BACKEND).conditions, ["10.0.0.2"])


def test_details_are_not_urgent() -> None:
    before = report.status(ObservedMachine(machine=machine("Creating"), vm=vm(), instance=instance(), claims=BOUND), NOW)
    given = saying(machine(), before)
    moved = Vm(ObjectName("web", "u", "78"), status=VmStatus("Running"))
    assert not report.is_urgent(before, report.status(ObservedMachine(machine=given, vm=moved, instance=instance(), claims=BOUND), LATER))
    assert report.is_urgent(before, report.status(ObservedMachine(machine=given, vm=moved, claims=BOUND), LATER))
    assert report.is_urgent(
        before, report.status(ObservedMachine(machine=given, instance=instance(), claims=BOUND, problem=NO_NETWORK), LATER)
    )


@pytest.mark.parametrize(
    ("annotations", "spec", "nothing"),
    [
        ({}, {}, True),
        ({"vitistack.io/root-image": "http://a/b"}, {}, False),
        ({"vitistack.io/os-installed": "true"}, {}, False),
        ({}, {"bootOrder": ["network", "disk"]}, False),
        ({}, {"bootOrder": ["disk", "network"]}, True),
        ({"kubevirt.io/boot-source": "datavolume"}, {"os": {"imageID": "http://a/b.iso"}}, False),
        ({}, {"os": {"imageID": "http://a/b.iso"}}, True),
    ],
)
def test_nothing_to_boot(annotations: dict[str, str], spec: dict[str, Any], nothing: bool) -> None:
    assert report.has_nothing_to_boot(machine(annotations=annotations, **spec)) is nothing


def test_news_come_once() -> None:
    restart = Condition(type="RestartRequired", status="True", message="cores")
    given = machine("Creating", cloudInit={"userData": "#cloud-config", "secretRef": {"name": "a"}})
    sight = ObservedMachine(
        machine=given, vm=vm("Running", None, restart), claims=(ObservedClaim("a", "Pending", lost=True),), problem=NO_NETWORK
    )
    after = report.status(sight, NOW)
    told = [each.reason for each in news(given, after)]
    assert told == ["NetworkConfigurationNotFound", "RestartRequired", "NoBootSource", "DiskLost", "CloudInitSourceAmbiguous"]
    given = saying(given, after)
    assert list(news(given, report.status(msgspec.structs.replace(sight, machine=given), LATER))) == []
