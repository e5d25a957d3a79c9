"""The status, from what is seen."""

from typing import Any

import msgspec
import pytest

from paddock.dialects.stakater.plan.conditions import SUCCESS, ConditionValue, no
from paddock.dialects.stakater.plan.disks import PlannedDisk
from paddock.dialects.stakater.plan.status import PassOutcome, StatusFacts, is_creating, newly_requires_restart, status
from tests.unit.dialects.stakater.plan.made import Data, claim, front, instance, machine, service, volume

NOW, BEFORE = "2027-01-15T08:00:00Z", "2027-01-15T07:00:00Z"
DONE = PassOutcome(synced=SUCCESS, applied=True)
FILLED = (PlannedDisk("web-rootdisk", "10Gi", volume(), claim()),)
FILLING = (PlannedDisk("web-rootdisk", "10Gi", volume(phase="CloneInProgress"), claim()),)
UNBOUND = (PlannedDisk("web-rootdisk", "10Gi", volume(phase="Pending"), claim(phase="Pending")),)
WAS_READY: Data = {"conditions": [{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": BEFORE}]}
WAS_UNAVAILABLE: Data = {"conditions": [{"type": "Ready", "status": "False", "reason": "Unavailable"}]}
HAS_RUN: Data = {"vm": {"created": True}}
DENIAL = "User x has insufficient permissions in clone source namespace images"


def sight(before: Data | None = None, strategy: str = "Always", **more: Any) -> StatusFacts:
    """Return the observed state of a machine."""
    wanted: Data = {"runStrategy": strategy, **more.pop("parameters", {})}
    return StatusFacts(vm=front(before, **wanted), product="paddock", service_name="web-lb", **more)


def ready(seen: StatusFacts, came: PassOutcome = DONE) -> tuple[str, str, str]:
    """The condition Ready."""
    found = next(each for each in status(seen, came, NOW).conditions or () if each.type == "Ready")
    return found.status, found.reason or "", found.message or ""


RUNS: Data = {"ready": True, "created": True}
STOPPED: Data = {"printableStatus": "Stopped"}
FAILED: Data = {"printableStatus": "Stopped", "conditions": [{"type": "Failure", "status": "True", "reason": "F", "message": DENIAL}]}
SERVED: Data = {"service": {"enabled": True}}


@pytest.mark.parametrize(
    ("seen", "wanted", "says"),
    [
        (sight(), ("False", "Creating"), "the virtual machine is being made"),
        (sight(machine=machine(**RUNS), disks=FILLED), ("True", "Available"), ""),
        (sight(machine=machine(**RUNS), parameters=SERVED), ("False", "Creating"), "the Service web-lb has no address yet"),
        (sight(machine=machine(**RUNS), parameters=SERVED, service=service()), ("False", "Creating"), "no address"),
        (sight(machine=machine(**RUNS), parameters=SERVED, service=service(hostname="lb")), ("True", "Available"), ""),
        (sight(strategy="Halted", machine=machine(**STOPPED), disks=FILLED), ("True", "Available"), ""),
        (sight(strategy="Halted", machine=machine(**STOPPED), disks=FILLING), ("False", "Creating"), "web-rootdisk is being filled"),
        (sight(strategy="Halted", machine=machine(created=True), disks=FILLED), ("False", "Creating"), "Running"),
        (sight(strategy="Manual", machine=machine(**STOPPED), disks=FILLED), ("True", "Available"), ""),
        (sight(HAS_RUN, "Manual", machine=machine(**STOPPED), disks=FILLED), ("False", "Creating"), "Stopped"),
        (sight(WAS_UNAVAILABLE, "Manual", machine=machine(**STOPPED), disks=FILLED), ("False", "Unavailable"), "Stopped"),
        (sight({**WAS_READY, **HAS_RUN}, "Manual", machine=machine(**STOPPED), disks=FILLED), ("False", "Unavailable"), "Stopped"),
        (sight(WAS_READY, machine=machine(printableStatus="ErrorUnschedulable")), ("False", "Unavailable"), "ErrorUnschedulable"),
        (sight(WAS_UNAVAILABLE, machine=machine(printableStatus="Starting")), ("False", "Unavailable"), "Starting"),
        (sight(machine=machine(printableStatus="Starting"), disks=FILLED), ("False", "Creating"), "the virtual machine is Starting"),
        (sight(machine=machine(**STOPPED), disks=UNBOUND), ("False", "Creating"), "web-rootdisk waits for a volume (ReadWriteMany, Block)"),
        (sight(machine=machine(**FAILED), disks=FILLING), ("False", "CloneNotAuthorized"), "kind: RoleBinding"),
    ],
)
def test_ready(seen: StatusFacts, wanted: tuple[str, str], says: str) -> None:
    found = ready(seen)
    assert found[:2] == wanted and says in found[2], found


def test_what_is_said_of_the_machine() -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE, "lastProbeTime": None}
    vm = front(cpu={"cores": 4, "threads": 2}, memory={"guest": "16Gi"}, service={"enabled": True})
    made = machine(vm, ready=True, created=True, conditions=[condition])
    seen = StatusFacts(vm=vm, product="paddock", machine=made, service=service(ip="192.0.2.1"), instance=instance(memory="8Gi"))
    found = status(seen, DONE, NOW)
    assert found.vm is not None and found.observedGeneration == 3
    assert (found.vm.printableStatus, found.vm.ready, found.vm.created) == ("Running", True, True)
    assert (found.vm.cpuCores, found.vm.memory, found.vm.serviceIP, found.vm.serviceHostname) == (4, "8Gi", "192.0.2.1", None)
    assert [(each.type, each.status, each.lastTransitionTime) for each in found.vm.conditions or ()] == [("Ready", "True", BEFORE)]
    off = msgspec.structs.replace(seen, vm=front(cpu={"cores": 4}), instance=None)
    assert (told := status(off, DONE, NOW).vm) is not None and (told.serviceIP, told.memory) == (None, "16Gi")


def test_nothing_is_said_of_a_machine_that_never_was() -> None:
    held = PassOutcome(synced=ConditionValue("Unknown", "DataSourceNotFound", "why"), ready=no("DataSourceNotFound", "why"))
    found = status(sight(), held, NOW)
    assert found.vm is None and found.observedGeneration is None
    again = status(sight({"vm": {"ready": True, "created": True}, "observedGeneration": 2}), held, NOW)
    assert again.vm is not None and (again.vm.ready, again.vm.created, again.observedGeneration) == (False, False, 2)


def test_the_same_sight_makes_the_same_status() -> None:
    seen = sight(WAS_READY, machine=machine(**RUNS), disks=FILLED)
    first = status(seen, DONE, NOW)
    again = msgspec.structs.replace(seen, vm=msgspec.structs.replace(seen.vm, status=first))
    assert status(again, DONE, "2030-01-01T00:00:00Z") == first
    assert next(each for each in first.conditions or () if each.type == "Ready").lastTransitionTime == BEFORE
    assert not is_creating(first) and is_creating(status(sight(), DONE, NOW))


def test_a_restart_is_told_when_it_comes_to_be_needed() -> None:
    needs: Data = {"conditions": [{"type": "RestartRequired", "status": "True", "message": "why"}]}
    after = status(sight(machine=machine(**needs)), DONE, NOW)
    assert newly_requires_restart(None, after) == "why"
    assert newly_requires_restart(status(sight(machine=machine()), DONE, NOW), after) == "why"
    assert newly_requires_restart(after, after) is None
    assert newly_requires_restart(after, status(sight(machine=machine()), DONE, NOW)) is None
