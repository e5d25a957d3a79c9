"""The report of a machine, from its observed state."""

import msgspec
import pytest

from paddock.base import reasons
from paddock.engine.machine.observation import GuestFault, Observation, RunEnd
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import InterfaceStatus
from paddock.kubevirt.plan.instance.observed import GuestReport, ObservedInstance
from paddock.kubevirt.plan.instance.prerequisites import StartBlocker
from paddock.kubevirt.plan.instance.report import status_of

STOPPED = GuestFault("ProcessStopped", "QEMU does not answer.")
RUNNING = Observation(phase="running", accelerator="kvm")


def instance(**spec: object) -> VirtualMachineInstance:
    document = {"metadata": {"name": "web", "namespace": "default", "uid": "u1"}, "spec": {"domain": {"devices": {}}, **spec}}
    return msgspec.convert(document, VirtualMachineInstance)


def conditions(found: VirtualMachineInstance, sight: ObservedInstance) -> dict[str, tuple[str, str | None]]:
    return {each.type: (each.status, each.reason) for each in status_of(found, sight).conditions or ()}


def seen(observed: Observation | None = RUNNING, **more: object) -> ObservedInstance:
    return ObservedInstance(now="2026-01-01T00:00:00Z", node="host", observed=observed, prepared=observed is not None, **more)  # type: ignore[arg-type]


@pytest.mark.spec("kubevirt", 131)
@pytest.mark.parametrize(
    ("blocker", "ready", "other"),
    [
        (StartBlocker("ErrImagePull", "x", "sync", reasons.IMAGE_NOT_FOUND), reasons.IMAGE_NOT_FOUND, ("Synchronized", "ErrImagePull")),
        (StartBlocker("Unschedulable", "x", "unschedulable", reasons.NO_MEMORY), reasons.NO_MEMORY, ("PodScheduled", "Unschedulable")),
        (StartBlocker("PVCInUse", "x", "sync"), "PVCInUse", ("Synchronized", "PVCInUse")),
    ],
)
def test_ready_has_the_code_of_what_a_machine_waits_for(blocker: StartBlocker, ready: str, other: tuple[str, str]) -> None:
    found = conditions(instance(), seen(None, hold=blocker))
    assert found["Ready"] == ("False", ready)
    assert found[other[0]] == ("False", other[1])


@pytest.mark.parametrize(
    ("sight", "ready"),
    [
        (seen(None), ("False", "GuestNotRunning")),
        (seen(), ("True", None)),
        (seen(answers=False), ("False", "ContainersNotReady")),
        (seen(answers=True), ("True", None)),
        (seen(Observation(phase="running", paused="user")), ("False", "GuestNotRunning")),
        (seen(Observation(phase="running", fault=STOPPED)), ("False", "ProcessStopped")),
        # What its probe said last is no news of a guest that does not run.
        (seen(Observation(phase="running", paused="user", fault=STOPPED), answers=True), ("False", "ProcessStopped")),
        (seen(Observation(phase="stopping", fault=STOPPED)), ("False", "PodTerminating")),
        (seen(silent="it hangs"), ("False", "GuestNotResponding")),
        # A guest that answers its probe serves, whatever its agent does.
        (seen(silent="it hangs", answers=True), ("True", None)),
        (seen(Observation(phase="stopping")), ("False", "PodTerminating")),
        (seen(Observation(phase="ended", end=RunEnd("crashed"))), ("False", "PodTerminating")),
    ],
)
@pytest.mark.spec("kubevirt", 26)
def test_ready(sight: ObservedInstance, ready: tuple[str, str | None]) -> None:
    assert conditions(instance(), sight)["Ready"] == ready


def test_what_no_longer_holds_is_taken_away_and_what_others_say_stays() -> None:
    machine = instance()
    paused = status_of(machine, seen(Observation(phase="running", paused="io-error", agent=True)))
    assert {each.type for each in paused.conditions or ()} >= {"Paused", "AgentConnected", "PodScheduled", "LiveMigratable"}
    others = [*(paused.conditions or ()), Condition(type="Provisioning", status="True")]
    machine = msgspec.structs.replace(machine, status=msgspec.structs.replace(paused, conditions=others))
    assert set(conditions(machine, seen())) == {"Ready", "PodScheduled", "LiveMigratable", "StorageLiveMigratable", "Provisioning"}


@pytest.mark.parametrize(
    ("paused", "reason"), [("user", "PausedByUser"), ("start", "PausedByUser"), ("io-error", "PausedIOError"), ("watchdog", "PausedByUser")]
)
def test_paused(paused: str, reason: str) -> None:
    assert conditions(instance(), seen(Observation(phase="running", paused=paused)))["Paused"] == ("True", reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sight", "agent"),
    [
        (seen(Observation(phase="running")), None),
        (seen(Observation(phase="running", agent=True)), ("True", None)),
        (seen(Observation(phase="running", agent=True), silent="it hangs"), ("False", "AgentNotResponding")),
        (seen(Observation(phase="running", agent=True), silent="it hangs", answers=True), ("False", "AgentNotResponding")),
        (seen(Observation(phase="running", agent=True, fault=STOPPED)), ("False", "AgentNotResponding")),
    ],
)
def test_an_agent_that_is_silent_is_not_connected(sight: ObservedInstance, agent: tuple[str, str | None] | None) -> None:
    assert conditions(instance(), sight).get("AgentConnected") == agent


def test_what_needs_attention_is_said_as_long_as_it_does() -> None:
    silent = status_of(instance(), seen(Observation(phase="running", detail="QEMU does not answer")))
    found = next(each for each in silent.conditions or () if each.type == "NeedsAttention")
    assert (found.status, found.message) == ("True", "QEMU does not answer")
    again = status_of(msgspec.structs.replace(instance(), status=silent), seen(Observation(phase="running")))
    assert all(each.type != "NeedsAttention" for each in again.conditions or ())


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (RunEnd("panicked", "Kernel panic"), "the machine has ended: panicked: Kernel panic"),
        (RunEnd("crashed"), "the machine has ended: crashed"),
        (RunEnd("guest-shutdown", "x"), "the machine has ended"),
    ],
)
def test_how_it_failed_is_kept(end: RunEnd, says: str) -> None:
    found = status_of(instance(), seen(Observation(phase="ended", end=end)))
    assert next(each.message for each in found.conditions or () if each.type == "Ready") == says


def test_why_it_waits() -> None:
    wants = instance(volumes=[{"name": "a", "dataVolume": {"name": "a"}}])
    volumes = conditions(wants, seen(None, hold=StartBlocker("DataVolumeNotReady", "a is at 3 %", "volumes")))
    assert volumes["DataVolumesReady"] == ("False", "NotAllDVsReady")
    assert "Synchronized" not in volumes
    assert conditions(wants, seen(None, hold=StartBlocker("ErrImagePull", "no such image")))["Synchronized"] == ("False", "ErrImagePull")
    room = conditions(wants, seen(None, hold=StartBlocker("Unschedulable", "no room", "unschedulable")))
    assert room["PodScheduled"] == ("False", "Unschedulable")
    assert conditions(wants, seen())["DataVolumesReady"] == ("True", "AllDVsReady")


def test_emulation_and_limits_of_the_network_are_said() -> None:
    found = conditions(instance(), seen(emulated="no KVM here", limits=("guests do not meet",)))
    assert found["SoftwareEmulation"] == ("True", "NoAcceleration")
    assert found["NetworkLimited"] == ("True", "UserModeNetwork")


def test_the_same_sight_gives_the_same_status() -> None:
    machine = instance()
    first = status_of(machine, seen())
    again = msgspec.structs.replace(machine, status=first)
    assert status_of(again, msgspec.structs.replace(seen(), now="2026-01-01T00:01:00Z")) == first


def test_nothing_is_learned_about_what_is_over() -> None:
    machine = instance()
    over = status_of(machine, seen(Observation(phase="ended", end=RunEnd("guest-shutdown"))))
    assert over.phase == "Succeeded"
    machine = msgspec.structs.replace(machine, status=over)
    assert status_of(machine, seen(None, hold=StartBlocker("ErrImagePull", "gone"))) == over


def test_cards_join_what_the_guest_says() -> None:
    card = InterfaceStatus(
        name="default", mac="02:00:00:00:00:01", ipAddress="10.112.64.5", ipAddresses=["10.112.64.5"], infoSource="domain"
    )
    inside = InterfaceStatus(
        interfaceName="eth0", mac="02:00:00:00:00:01", ipAddress="10.0.2.2", ipAddresses=["10.0.2.2"], infoSource="guest-agent"
    )
    other = InterfaceStatus(interfaceName="docker0", mac="02:00:00:00:00:99", infoSource="guest-agent")
    found = status_of(instance(), seen(cards=(card,), guest=GuestReport(interfaces=(inside, other)))).interfaces or []
    assert [(each.name, each.interfaceName, each.ipAddress, each.infoSource) for each in found] == [
        ("default", "eth0", "10.112.64.5", "domain, guest-agent"),
        (None, "docker0", None, "guest-agent"),
    ]


def test_bridged_cards_have_the_address_the_guest_says() -> None:
    card = InterfaceStatus(name="lan", mac="02:00:00:00:00:01", infoSource="domain")
    inside = InterfaceStatus(interfaceName="eth0", mac="02:00:00:00:00:01", ipAddress="192.168.1.7", ipAddresses=["192.168.1.7"])
    found = status_of(instance(), seen(cards=(card,), guest=GuestReport(interfaces=(inside,)))).interfaces or []
    assert found[0].ipAddress == "192.168.1.7"
