"""The parts of a machine's snapshot, and its status."""

import msgspec
import pytest

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubevirt.kinds.snapshot import SnapshotStatus, VirtualMachineSnapshot
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.snapshots import machines as plan

NOW = "2026-01-01T00:00:00Z"


def snapshot(**spec: object) -> VirtualMachineSnapshot:
    document = {"metadata": {"name": "s", "namespace": "default", "uid": "u"}, "spec": {"source": {"name": "web"}, **spec}}
    return msgspec.convert(document, VirtualMachineSnapshot)


def machine() -> VirtualMachine:
    volumes = [
        {"name": "root", "dataVolume": {"name": "disk"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "box", "containerDisk": {"image": "x"}},
        {"name": "tmp", "emptyDisk": {"capacity": "1Gi"}},
    ]
    metadata = {"name": "web", "namespace": "default", "uid": "m", "managedFields": [{"manager": "x"}]}
    return msgspec.convert({"metadata": metadata, "spec": {"template": {"spec": {"domain": {}, "volumes": volumes}}}}, VirtualMachine)


def test_what_lasts_is_in_a_snapshot() -> None:
    found = plan.volumes_of(machine())
    assert (found.claims, found.excluded) == ({"root": "disk", "data": "claim"}, ("box", "tmp"))


def test_names_come_from_the_uid() -> None:
    assert plan.content_name(snapshot()) == "vmsnapshot-content-u"
    assert plan.volume_snapshot_name(snapshot(), "root") == "vmsnapshot-u-volume-root"


def test_copies_have_what_a_restore_needs() -> None:
    copied = plan.copy_of(machine())
    assert copied["metadata"]["name"] == "web" and "managedFields" not in copied["metadata"]
    assert [each["name"] for each in copied["spec"]["template"]["spec"]["volumes"]] == ["root", "data", "box", "tmp"]
    metadata = {"name": "disk", "namespace": "default", "uid": "c", "labels": {"a": "b"}, "finalizers": ["x"], "resourceVersion": "1"}
    claim = plan.copy_of_claim(msgspec.convert({"metadata": metadata, "spec": {"volumeName": "v"}}, PersistentVolumeClaim))
    assert claim["metadata"] == {"name": "disk", "namespace": "default", "uid": "c", "labels": {"a": "b"}}
    assert claim["spec"]["volumeName"] == "v"


@pytest.mark.parametrize(
    ("deadline", "age", "over"), [(None, 300, False), (None, 301, True), ("1m", 61, True), ("0s", 10**6, False), ("1h", 3599, False)]
)
def test_deadlines(deadline: str | None, age: float, over: bool) -> None:
    assert plan.overdue(snapshot(**({"failureDeadline": deadline} if deadline else {})), age) is over


@pytest.mark.parametrize(
    ("online", "paused", "agent", "quiesced", "found"),
    [
        (False, False, False, False, []),
        (True, False, False, False, ["NoGuestAgent", "Online"]),
        (True, False, True, True, ["GuestAgent", "Online"]),
        (True, False, True, False, ["Online", "QuiesceFailed"]),
        (True, True, False, False, ["Online", "Paused"]),
    ],
)
def test_circumstances(online: bool, paused: bool, agent: bool, quiesced: bool, found: list[str]) -> None:
    assert plan.indications(online=online, paused=paused, agent=agent, quiesced=quiesced) == found


def said(status: SnapshotStatus) -> dict[str, str]:
    return {each.type: each.status for each in status.conditions or ()}


def test_the_way_of_its_status() -> None:
    waits = plan.under_way(SnapshotStatus(), NOW, "m", "", "waiting")
    assert (waits.phase, waits.sourceUID, said(waits)) == ("InProgress", "m", {"Ready": "False", "Progressing": "True"})
    # Known things stay known, and the same thing said again is the same status.
    assert plan.under_way(waits, "2026-01-01T00:01:00Z", "", "", "waiting") == waits
    done = plan.ready(waits, NOW, ["Online", "NoGuestAgent"], plan.volumes_of(machine()))
    assert (done.phase, done.readyToUse, done.creationTime, done.sourceUID) == ("Succeeded", True, NOW, "m")
    assert said(done) == {"Ready": "True", "Progressing": "False"}
    assert [each.indication for each in done.sourceIndications or ()] == ["Online", "NoGuestAgent"]
    bad = plan.failed(waits, NOW, "no space")
    assert said(bad) == {"Ready": "False", "Progressing": "False", "Failure": "True"}
    assert bad.error is not None and bad.error.message == "snapshot deadline exceeded: no space"


@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("Source does not exist: VirtualMachine web", "Source does not exist"),
        ("Source not locked: snapshot one is being taken", "Source not locked"),
        ("volume not bound: disk", "Source not locked source default/web volume not bound"),
    ],
)
def test_a_snapshot_without_its_machine_is_not_on_its_way(why: str, reason: str) -> None:
    status = plan.waiting(SnapshotStatus(), NOW, "", "default/web", why)
    assert status.phase == "InProgress" and said(status) == {"Ready": "False", "Progressing": "False"}
    (progressing,) = (each for each in status.conditions or () if each.type == "Progressing")
    assert (progressing.reason, progressing.message) == (reason, why)
