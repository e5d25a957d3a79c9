"""Decisions about VMSnapshots: due times, retention, the tree, and what is refused."""

from datetime import UTC, datetime

import pytest

from paddock.contract import messages as m
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmsnapshot import (
    ProviderSnapshot,
    RetentionPolicy,
    SnapshotConfig,
    SnapshotMetadata,
    SnapshotSchedule,
    VMSnapshot,
    VMSnapshotSpec,
    VMSnapshotStatus,
)
from paddock.dialects.virtrigaud.plan import reverting
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.dialects.virtrigaud.plan.reverting import RevertRecord
from paddock.dialects.virtrigaud.plan.snapshots import lineage, listing, records, retention, schedules, taking
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def shown(moment: float | None) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%m-%d %H:%M:%S") if moment is not None else ""


def taken(name: str, begun: str, *, owner: str = "", pinned: bool = False, **policy: object) -> VMSnapshot:
    """A snapshot that the provider has confirmed."""
    owners = [OwnerReference(kind="VMSnapshot", name="t", uid=owner, controller=True)] if owner else None
    status = VMSnapshotStatus(
        snapshotID=f"id-{name}",
        phase="Ready",
        creationTime=begun,
        completionTime=begun,
        providerStatus={"lab": ProviderSnapshot(available=True, id=f"id-{name}", path="vm-1")},
    )
    spec = VMSnapshotSpec(
        vmRef=LocalObjectReference(name="web"),
        retentionPolicy=RetentionPolicy(**policy),  # type: ignore[arg-type]
        metadata=SnapshotMetadata(pinned=pinned),
    )
    meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", ownerReferences=owners, generation=1)
    return VMSnapshot(metadata=meta, spec=spec, status=status)


@pytest.mark.parametrize(
    ("cron", "zone", "since", "expected"),
    [
        ("30 3 * * *", "UTC", "2026-01-10T03:30:00", "01-11 03:30:00"),
        ("30 3 * * *", "America/New_York", "2026-01-10T00:00:00", "01-10 08:30:00"),
        ("0 30 3 * * *", "Europe/Oslo", "2026-07-10T00:00:00", "07-10 01:30:00"),
        ("15 30 3 * * * 2027", "UTC", "2026-07-10T00:00:00", "01-01 03:30:15"),
        ("@weekly", "UTC", "2026-07-10T00:00:00", "07-12 00:00:00"),
        ("@every 90m", "UTC", "2026-01-01T02:00:00", "01-01 03:00:00"),
        # Where clocks go forward, 02:30 does not exist; where they go back, it comes twice.
        ("30 2 * * *", "Europe/Oslo", "2026-03-29T00:00:00", "03-30 00:30:00"),
        ("30 2 * * *", "Europe/Oslo", "2026-10-25T00:30:00", "10-25 01:30:00"),
        ("0 0 31 2 *", "UTC", "2026-01-01T00:00:00", ""),
    ],
)
def test_the_next_due_time(cron: str, zone: str, since: str, expected: str) -> None:
    times = schedules.times(SnapshotSchedule(enabled=True, cronSpec=cron, timezone=zone), at("2026-01-01T00:00:00"))
    assert shown(times.following(at(since))) == expected


@pytest.mark.parametrize(
    ("cron", "since", "now", "expected"),
    [
        ("0 * * * *", "2026-01-01T10:30:00", "2026-01-01T10:59:59", ""),
        ("0 * * * *", "2026-01-01T10:30:00", "2026-01-01T11:00:00", "01-01 11:00:00"),
        ("0 * * * *", "2026-01-01T10:30:00", "2026-12-01T11:10:00", "12-01 11:00:00"),
        ("0 0 1 1 *", "2020-06-01T00:00:00", "2026-12-01T00:00:00", "01-01 00:00:00"),
        ("@every 1s", "2020-06-01T00:00:00", "2026-12-01T00:00:00", "12-01 00:00:00"),
        ("* * * * * *", "2026-01-01T00:00:00", "2026-12-01T00:00:07", "12-01 00:00:07"),
    ],
)
def test_the_latest_time_that_has_come(cron: str, since: str, now: str, expected: str) -> None:
    times = schedules.times(SnapshotSchedule(enabled=True, cronSpec=cron), at("2026-01-01T00:00:00"))
    assert shown(times.latest(at(since), at(now))) == expected


def test_a_child_is_the_same_whenever_it_is_made() -> None:
    template = taken("daily", "2026-01-01T00:00:00Z", maxCount=3)
    first, again = schedules.child(template, 1000.0), schedules.child(template, 1000.0)
    assert first == again and first.metadata.name == "daily-1000"
    assert first.metadata.ownerReferences is not None and first.metadata.ownerReferences[0].uid == "uid-daily"
    assert first.spec.schedule is None and first.spec.retentionPolicy == template.spec.retentionPolicy


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (SnapshotConfig(includeMemory=True), "with memory"),
        (SnapshotConfig(type="Application"), "consistent for applications"),
        (SnapshotConfig(consistencyLevel="ApplicationConsistent"), "consistent for applications"),
    ],
)
def test_what_is_refused(config: SnapshotConfig, text: str) -> None:
    asked = VMSnapshot(spec=VMSnapshotSpec(snapshotConfig=config))
    with pytest.raises(Refusal, match=text) as caught:
        taking.check(asked, "Provider default/lab", ReportedCapabilities(supportsSnapshots=True))
    assert caught.value.reason == "UnsupportedByProvider"


def test_two_objects_have_two_names_at_the_provider() -> None:
    def named(uid: str) -> str:
        config = SnapshotConfig(name="nightly")
        return taking.name_hint(VMSnapshot(metadata=ObjectMeta(name="s", uid=uid), spec=VMSnapshotSpec(snapshotConfig=config)))

    assert named("a") == named("a") != named("b")
    assert taking.request(VMSnapshot(metadata=ObjectMeta(name="s", uid="a")), "vm-1") == m.SnapshotCreateRequest(
        vm_id="vm-1", name_hint=f"s-{named('a').rpartition('-')[2]}"
    )


@pytest.mark.spec("virtrigaud", 76)
def test_only_snapshots_with_a_number_are_counted_and_pruned() -> None:
    group = [taken(f"s{number}", f"2026-01-0{number}T00:00:00Z", maxCount=2) for number in range(1, 5)]
    others = [
        taken("plain", "2026-01-05T00:00:00Z"),
        taken("pinned", "2026-01-06T00:00:00Z", maxCount=2, pinned=True),
        taken("scheduled", "2026-01-07T00:00:00Z", owner="uid-t", maxCount=2),
    ]
    pruned = [each.metadata.name for each in group + others if retention.decide(each, group + others, "", at("2026-02-01T00:00:00")).delete]
    assert pruned == ["s1", "s2"]
    # The snapshot that its machine goes back to is not counted, either.
    pruned = [each.metadata.name for each in group if retention.decide(each, group, "s1", at("2026-02-01T00:00:00")).delete]
    assert pruned == ["s2"]


def test_the_tree_follows_reverts() -> None:
    first, second = taken("a", "2026-01-01T00:00:00Z"), taken("b", "2026-01-02T00:00:00Z")
    third = taken("c", "2026-01-03T00:00:00Z")
    assert lineage.parent(first, [first, second, third], "", "") is None
    found = lineage.parent(third, [first, second, third], "", "")
    assert found is not None and found.name == "b"
    found = lineage.parent(third, [first, second, third], "uid-a", "2026-01-02T12:00:00Z")
    assert found is not None and found.name == "a"
    found = lineage.parent(third, [first, second, third], "uid-a", "2026-01-01T12:00:00Z")
    assert found is not None and found.name == "b"


def test_a_machine_lists_what_is_of_it() -> None:
    mine, foreign = taken("a", "2026-01-02T00:00:00Z"), taken("b", "2026-01-01T00:00:00Z")
    assert [each.name for each in listing.listed("vm-1", [mine, foreign]) or ()] == ["b", "a"]
    assert listing.listed("vm-2", [mine, foreign]) is None and listing.listed(None, [mine]) is None


def test_the_record_of_a_revert_survives_the_status() -> None:
    record = RevertRecord("u", "s", "id", state="requested", task="t", failures=1)
    status = reverting.with_record(VirtrigaudMachineStatus(provider={"host": "h"}), record)
    assert reverting.record(status) == record and reverting.is_under_way(status)
    assert reverting.with_record(status, None).provider == {"host": "h"}
    assert reverting.record(VirtrigaudMachineStatus(provider={"paddock.io/revert": "{"})) is None
    assert reverting.wanted(VirtrigaudVirtualMachine()) == "" and records.place(VMSnapshot()) is None
