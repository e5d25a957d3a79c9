"""Migrations between servers: which begin, what each side does next, and what both say."""

import pytest
from msgspec.structs import replace

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.migration import (
    MigrationReceiver,
    MigrationSource,
    MigrationSpec,
    MigrationStatus,
    VirtualMachineInstanceMigration,
)
from paddock.kubevirt.kinds.migrationpolicy import MigrationPolicy, MigrationPolicySpec
from paddock.kubevirt.kinds.status import MigrationState, VirtualMachineInstanceStatus
from paddock.kubevirt.plan.machine.receivers import TARGET
from paddock.kubevirt.plan.migration import decentralized
from paddock.kubevirt.plan.migration.decentralized import PeerFacts

URL, NOW = "192.0.2.1:9185", "2026-01-02T03:04:05Z"
RUNS = VirtualMachineInstance(metadata=ObjectMeta(name="web"), status=VirtualMachineInstanceStatus(phase="Running"))
WAITS = VirtualMachineInstance(
    metadata=ObjectMeta(name="web", annotations={TARGET: "true"}), status=VirtualMachineInstanceStatus(phase="WaitingForSync")
)
SENDS = MigrationSpec(vmiName="web", sendTo=MigrationSource(migrationID="m", connectURL=URL))
RECEIVES = MigrationSpec(vmiName="web", receive=MigrationReceiver(migrationID="m"))


def move(spec: MigrationSpec, name: str = "m", phase: str = "") -> VirtualMachineInstanceMigration:
    return VirtualMachineInstanceMigration(metadata=ObjectMeta(name=name, uid=name), spec=spec, status=MigrationStatus(phase=phase))


def owned(kind: str) -> VirtualMachineInstance:
    owner = OwnerReference(apiVersion="kubevirt.io/v1", kind=kind, name="web", uid="u", controller=True)
    return replace(RUNS, metadata=replace(RUNS.metadata, ownerReferences=[owner]))


BOTH = replace(SENDS, receive=RECEIVES.receive)
AT_NO_PORT = replace(SENDS, sendTo=MigrationSource(migrationID="m", connectURL="host"))
ENDED = replace(RUNS, status=VirtualMachineInstanceStatus(phase="Succeeded"))


@pytest.mark.spec("kubevirt", 288)
@pytest.mark.parametrize(
    ("spec", "instance", "others", "decided", "why"),
    [
        (SENDS, RUNS, (), "", ""),
        (SENDS, owned("VirtualMachine"), (), "", ""),
        (RECEIVES, WAITS, (), "", ""),
        (SENDS, RUNS, (move(SENDS, "old", "Failed"), move(SENDS, "new")), "", ""),
        (SENDS, None, (), "", "does not exist"),
        (SENDS, ENDED, (), "", "has ended"),
        (BOTH, RUNS, (), "", "this one says both"),
        (SENDS, RUNS, (), "sent", "choose another migrationID"),
        (SENDS, RUNS, (move(SENDS, "other", "Running"),), "", "another migration of the instance (other) is under way"),
        (RECEIVES, RUNS, (), "", "has a guest of its own"),
        (SENDS, WAITS, (), "", "has none to send"),
        (AT_NO_PORT, RUNS, (), "", '"host" is no address'),
        (SENDS, owned("VirtualMachineInstanceReplicaSet"), (), "", "belongs to VirtualMachineInstanceReplicaSet web"),
    ],
)
def test_a_migration_begins_or_says_why_not(
    spec: MigrationSpec,
    instance: VirtualMachineInstance | None,
    others: tuple[VirtualMachineInstanceMigration, ...],
    decided: str,
    why: str,
) -> None:
    found = decentralized.obstacle(move(spec), instance, others, decided)
    assert why in found and bool(why) == bool(found)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (URL, ("192.0.2.1", 9185)),
        ("[2001:db8::1]:1", ("2001:db8::1", 1)),
        ("host.example:443", ("host.example", 443)),
        ("host", None),
        (":1", None),
        ("host:0", None),
        ("host:65536", None),
        ("host:x", None),
        ("https://host:1", None),
        ("", None),
    ],
)
def test_an_address(url: str, place: tuple[str, int] | None) -> None:
    assert decentralized.address_of(url) == place


@pytest.mark.parametrize(
    ("phase", "handed", "works", "step"),
    [
        ("", "", False, "begin"),
        ("Synchronizing", "", False, "ask"),
        ("Synchronizing", "", True, "follow"),
        ("Running", "", True, "follow"),
        ("Running", "", False, "fail"),
        ("Running", "offered", True, "follow"),
        ("Running", "offered", False, "settle"),
        ("Synchronizing", "offered", False, "settle"),
        ("Running", "decided", False, "succeed"),
        ("Running", "decided", True, "succeed"),
    ],
)
def test_the_step_of_a_source(phase: str, handed: str, step: str, *, works: bool) -> None:
    assert decentralized.departure_step(phase, handed, works=works) == step


@pytest.mark.parametrize(
    ("phase", "state", "deleting", "refused", "step"),
    [
        ("", "", False, False, "begin"),
        ("WaitingForSync", "", False, False, "wait"),
        ("WaitingForSync", "", True, False, "fail"),
        ("WaitingForSync", "", False, True, "fail"),
        ("WaitingForSync", "waiting", False, False, "follow"),
        ("Running", "waiting", False, False, "follow"),
        ("Running", "waiting", True, False, "drop"),
        ("Running", "waiting", False, True, "drop"),
        ("Running", "taken", True, True, "succeed"),
        ("Running", "dropped", False, False, "fail"),
        ("Running", "", False, False, "fail"),
    ],
)
def test_the_step_of_a_target(phase: str, state: str, step: str, *, deleting: bool, refused: bool) -> None:
    assert decentralized.arrival_step(phase, state, deleting=deleting, refused=refused) == step


STRICT = MigrationPolicySpec(bandwidthPerMigration="1Mi", completionTimeoutPerGiB=7, allowAutoConverge=True)


@pytest.mark.spec("kubevirt", 289)
@pytest.mark.parametrize(
    ("spec", "size", "limits"),
    [
        (None, 4.0, ("", 0, 600.0, False)),
        (None, 0.1, ("", 0, 150.0, False)),
        (MigrationPolicySpec(), 2.0, ("p", 0, 300.0, False)),
        (MigrationPolicySpec(completionTimeoutPerGiB=0), 2.0, ("p", 0, 0.0, False)),
        (STRICT, 2.0, ("p", 1 << 20, 14.0, True)),
    ],
)
def test_limits(spec: MigrationPolicySpec | None, size: float, limits: tuple[str, int, float, bool]) -> None:
    policy = MigrationPolicy(metadata=ObjectMeta(name="p"), spec=spec) if spec is not None else None
    found = decentralized.limits(policy, size)
    assert (found.policy, found.bandwidth, found.seconds, found.auto_converge) == limits


def test_what_blocks_a_migration_goes_when_it_goes_on() -> None:
    waits = decentralized.entered(None, "WaitingForSync", NOW)
    blocked = decentralized.blocked(waits, "no network", NOW)
    assert [(each.type, each.message) for each in blocked.conditions or ()] == [("decentralizedMigrationBlocked", "no network")]
    assert decentralized.blocked(blocked, "no network", "later") == blocked
    goes = decentralized.entered(blocked, "Running", NOW)
    assert goes.conditions is None and next(each.phase for each in goes.phaseTransitionTimestamps or ()) == "WaitingForSync"
    other = Condition(type="Ready", status="True")
    found = decentralized.failure_of_instance([other], "no network", NOW)
    assert found is not None and {each.type for each in found} == {"Ready", "DecentralizedLiveMigrationFailure"}
    assert decentralized.failure_of_instance(found, "", NOW) == [other]


@pytest.mark.spec("kubevirt", 277)
def test_the_end_keeps_what_both_sides_know() -> None:
    state = decentralized.begun("u", PeerFacts("one", "ns", "web", "v1", "u", "p1"), PeerFacts("two", "ns", "web", "v2", "t", "p2"), NOW)
    assert (state.sourceState or {})["domainName"] == "ns_web" and (state.targetState or {})["migrationUID"] == "t"
    good = decentralized.ended(state, "u", NOW)
    assert good.completed and not good.failed and good.sourceState == state.sourceState
    bad = decentralized.ended(state, "u", NOW, "no room", is_aborted=True)
    assert (bad.failed, bad.failureReason, bad.abortRequested, bad.abortStatus) == (True, "no room", True, "Succeeded")
    # That of an earlier migration of the instance says nothing.
    assert decentralized.ended(MigrationState(migrationUid="x", targetNode="n"), "u", NOW, "no").targetNode is None
