"""Rows of machines and of other objects."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest

from paddock.base.clock import SystemClock
from paddock.base.jsondata import Data
from paddock.fleet.kinds import VM, VMI
from paddock.kubernetes.client.target import EVENTS, Target
from paddock.web.answers.rows import WebObjectRow, WebTaskRow
from paddock.web.images import NoImages, WebLibraryImage
from paddock.web.live import kindtable, objectrows, topics, verbs
from paddock.web.live.machinerows import MachineRows
from paddock.web.live.objects import LiveObjects
from paddock.web.live.taskrows import TaskRows
from paddock.web.live.topicnames import WebTopic
from tests.coroutines import scripted
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD
from tests.kit.servers.apiharness import Harness
from tests.unit.fleet.machines import examples

NOW = 1_800_000_000.0
CLOCK = SystemClock()
JUST_NOW, LONG_AGO = "2027-01-15T07:59:00Z", "2027-01-15T07:00:00Z"


def live(*groups: tuple[Target[Data], Iterable[Data]]) -> LiveObjects:
    """Objects as watches hold them."""
    known: Mapping[str, Collection[Data]] = {target.qualified: list(objects) for target, objects in groups}
    return LiveObjects(lambda target: known.get(target.qualified, ()), NOW)


def made(target: Target[Data], name: str = "a", *, spec: Any = None, status: Any = None, **metadata: Any) -> Data:
    head = {"apiVersion": target.api_version, "kind": target.kind}
    return {
        **head,
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": spec or {},
        "status": status or {},
    }


def with_disk(name: str = "web", claim: str = "root", network: str = "") -> Data:
    """A VirtualMachine with a claim, and with a network if one is named."""
    spec: Data = {
        "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
        "volumes": [{"name": "root", "dataVolume": {"name": claim}}],
        "networks": [{"name": "lan", "multus": {"networkName": network}}] if network else [],
    }
    return examples.vm(name, template={"spec": spec})


def one(rows: Iterable[WebObjectRow]) -> WebObjectRow:
    (row,) = rows
    return row


def test_a_front_and_its_machine_are_one_row() -> None:
    front = examples.stakater()
    (row,) = MachineRows(CLOCK).rows(
        live((STAKATER.target, [front]), (VM.target, [examples.vm(owner=front)]), (VMI.target, [examples.vmi()]))
    )
    assert (row.id, row.dialect, row.state) == ("stakater/default/web", "stakater", "waits")


def test_a_machine_whose_objects_are_the_same_keeps_its_row() -> None:
    source, vm, other = MachineRows(CLOCK), examples.vm(), examples.vm("db")
    before = {each.id: each for each in source.rows(live((VM.target, [vm, other])))}
    after = {each.id: each for each in source.rows(live((VM.target, [vm, examples.vm("db", runStrategy="Halted")])))}
    assert after["vm/default/web"] is before["vm/default/web"]
    assert after["vm/default/db"] is not before["vm/default/db"]


@pytest.mark.parametrize(
    ("vm", "vmi", "expected"),
    [
        (examples.vm(runStrategy="Halted"), None, ["start", "snapshot", "clone", "restore", "protect", "delete"]),
        (
            examples.vm(),
            examples.vmi(phase="Running", conditions=[{"type": "Ready", "status": "True"}]),
            ["stop", "restart", "pause", "suspend", "reset", "snapshot", "clone", "protect", "delete"],
        ),
        (
            examples.vm(),
            examples.vmi(phase="Running", conditions=[{"type": "Paused", "status": "True"}]),
            ["stop", "restart", "unpause", "suspend", "reset", "snapshot", "clone", "protect", "delete"],
        ),
        (
            examples.vm(),
            examples.vmi(phase="Running", conditions=[{"type": "Suspended", "status": "True"}]),
            ["resume", "protect", "delete"],
        ),
    ],
    ids=["stopped", "running", "paused", "suspended"],
)
def test_verbs_are_those_of_the_state(vm: Data, vmi: Data | None, expected: list[str]) -> None:
    (machine,) = live((VM.target, [vm]), (VMI.target, [vmi] if vmi else [])).machines
    assert list(verbs.of(machine)) == expected


def test_a_protected_machine_is_not_deleted_and_a_deleted_one_left_alone() -> None:
    protected, going = examples.vm(), examples.vm("db")
    protected["metadata"]["labels"] = {"kubevirt.io/vm-delete-protection": "True"}
    going["metadata"]["deletionTimestamp"] = JUST_NOW
    first, second = live((VM.target, [going, protected])).machines
    assert list(verbs.of(first)) == []
    assert "delete" not in verbs.of(second)
    assert "unprotect" in verbs.of(second)


# --- objects ----------------------------------------------------------------------------------------------------------------


def test_a_volume_and_what_fills_it_are_one_row_with_its_machines() -> None:
    claim = made(kindtable.CLAIMS, "root", spec={"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}, status={"phase": "Pending"})
    filler = made(
        kindtable.DATA_VOLUMES,
        "root",
        spec={"source": {"http": {"url": "https://images.example/a.qcow2"}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
        status={"phase": "ImportInProgress", "progress": "45.30%"},
    )
    row = one(objectrows.volumes(live((kindtable.CLAIMS, [claim]), (kindtable.DATA_VOLUMES, [filler]), (VM.target, [with_disk()]))))
    assert (row.kind, row.id, row.percent, row.state) == ("DataVolume", "datavolumes.cdi.kubevirt.io/default/root", 45, "waits")
    assert row.cells == {"size": 0, "class": "fast", "access": ["ReadWriteOnce"], "source": "https://images.example/a.qcow2"}
    assert row.machines == ["vm/default/web"]


def test_lone_claims_and_lone_data_volumes_are_rows_too() -> None:
    claim = made(kindtable.CLAIMS, "data", status={"phase": "Bound", "capacity": {"storage": "2Gi"}})
    filler = made(kindtable.DATA_VOLUMES, "next", spec={"pvc": {"resources": {"requests": {"storage": "1Gi"}}}, "source": {"blank": {}}})
    rows = list(objectrows.volumes(live((kindtable.CLAIMS, [claim]), (kindtable.DATA_VOLUMES, [filler]))))
    assert [(each.kind, each.name, each.cells["size"], each.cells.get("source")) for each in rows] == [
        ("PersistentVolumeClaim", "data", 2 << 30, None),
        ("DataVolume", "next", 1 << 30, "blank"),
    ]


def test_an_object_with_a_controller_is_not_deleted_here() -> None:
    owner = {"kind": "DataVolume", "name": "root", "controller": True}
    row = one(objectrows.volumes(live((kindtable.CLAIMS, [made(kindtable.CLAIMS, ownerReferences=[owner])]))))
    assert row.keeps == "DataVolume root keeps it; change or delete that"


def test_networks_name_their_machines_and_configuration() -> None:
    config = '{"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "bridge": "br0", "vlan": 7, "ipam": {"subnet": "10.0.0.0/24"}}]}'
    attachment = made(kindtable.ATTACHMENTS, "lan", spec={"config": config})
    row = one(objectrows.networks(live((kindtable.ATTACHMENTS, [attachment]), (VM.target, [with_disk(network="lan")]))))
    assert row.cells == {"type": "bridge", "bridge": "br0", "vlan": 7, "subnet": "10.0.0.0/24"}
    assert row.machines == ["vm/default/web"]


@pytest.mark.parametrize("config", ["", "no json", "[]", '"text"', '{"plugins": []}', '{"type": 5, "ipam": "x"}'])
def test_a_configuration_that_is_none_is_an_empty_row(config: str) -> None:
    attachment = made(kindtable.ATTACHMENTS, spec={"config": config})
    assert one(objectrows.networks(live((kindtable.ATTACHMENTS, [attachment])))).cells == {}


def test_snapshots_name_their_machine() -> None:
    snapshot = made(
        kindtable.SNAPSHOTS,
        spec={"source": {"kind": "VirtualMachine", "name": "web"}},
        status={"readyToUse": True, "indications": ["Online", "GuestAgent"]},
    )
    row = one(objectrows.snapshot_rows(live((kindtable.SNAPSHOTS, [snapshot]), (VM.target, [examples.vm()]))))
    assert (row.state, row.cells["consistency"], row.machines) == ("good", "file systems", ["vm/default/web"])


def test_pools_know_their_members() -> None:
    member = examples.vm()
    member["metadata"]["ownerReferences"] = [{"kind": "VirtualMachinePool", "name": "a", "uid": "uid-a", "apiVersion": "x/v1"}]
    pool = made(kindtable.POOLS, spec={"replicas": 2}, status={"readyReplicas": 1})
    row = one(objectrows.pools(live((kindtable.POOLS, [pool]), (VM.target, [member, examples.vm("db")]))))
    assert (row.cells, row.machines, row.state) == ({"replicas": 2, "ready": 1}, ["vm/default/web"], "waits")


def test_providers_know_their_machines() -> None:
    provider = made(kindtable.PROVIDERS[0], "esx", spec={"type": "vsphere", "endpoint": "https://esx.example"})
    row = one(objectrows.providers(live((kindtable.PROVIDERS[0], [provider]), (VIRTRIGAUD.target, [examples.virtrigaud()]))))
    assert (row.cells["count"], row.machines) == (1, ["virtrigaud/default/db"])


def test_migrations_say_from_where_to_where() -> None:
    state = {"sourceNode": "a", "targetNode": "b"}
    migration = made(kindtable.MIGRATIONS, spec={"vmiName": "web"}, status={"phase": "Running", "migrationState": state})
    row = one(
        objectrows.migrations(live((kindtable.MIGRATIONS, [migration]), (VM.target, [examples.vm()]), (VMI.target, [examples.vmi()])))
    )
    assert (row.cells, row.machines) == ({"phase": "Running", "from": "a", "to": "b"}, ["vm/default/web"])


@pytest.mark.parametrize(
    ("target", "source", "shown"),
    [
        (kindtable.IMAGES[0], {"http": {"url": "https://a/b"}}, "https://a/b"),
        (kindtable.DATA_SOURCES, {"source": {"pvc": {"name": "golden", "namespace": "x"}}}, "pvc/golden"),
        (kindtable.PROVIDER_IMAGES[0], {"source": {"libvirt": {"path": "/a.qcow2"}}}, "/a.qcow2"),
        (
            kindtable.IMPORT_CRONS,
            {"schedule": "0 * * * *", "template": {"spec": {"source": {"registry": {"url": "docker://q/a"}}}}},
            "docker://q/a (0 * * * *)",
        ),
    ],
    ids=lambda each: each.kind if isinstance(each, Target) else "",
)
def test_images_say_where_they_come_from(target: Target[Data], source: Data, shown: str) -> None:
    assert one(objectrows.images(live((target, [made(target, spec=source)])))).cells["source"] == shown


ADDRESS = {"source": {"http": {"url": "https://images.example/a.qcow2"}}}
WELL_WRITTEN = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}
FAILED = {
    "phase": "ImportInProgress",
    "conditions": [{"type": "Running", "status": "False", "reason": "Error", "message": "404 Not Found"}],
}


@pytest.mark.parametrize(
    ("disks", "state", "status", "text"),
    [
        ([], "unknown", "not tried yet", None),
        ([{"phase": "Succeeded"}], "good", "ready", None),
        ([{"phase": "ImportInProgress"}], "waits", "being read", None),
        ([FAILED], "bad", "cannot be read", "404 Not Found"),
        # What was read once is no longer there.
        ([{"phase": "Succeeded"}, FAILED], "bad", "cannot be read", "404 Not Found"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_data_source_is_as_ready_as_its_address(disks: list[Data], state: str, status: str, text: str | None, *, named: bool) -> None:
    source = made(kindtable.DATA_SOURCES, "debian", spec=ADDRESS, status=WELL_WRITTEN)
    note = {} if named else {"virtualization.k8c.io/data-source": "default/debian"}
    spec = {"sourceRef": {"kind": "DataSource", "name": "debian"}} if named else ADDRESS
    volumes = [made(kindtable.DATA_VOLUMES, f"disk-{n}", spec=spec, status=each, annotations=note) for n, each in enumerate(disks)]
    volumes.append(made(kindtable.DATA_VOLUMES, "other", spec=ADDRESS, status={"phase": "Failed"}))
    row = one(objectrows.images(live((kindtable.DATA_SOURCES, [source]), (kindtable.DATA_VOLUMES, volumes))))
    assert (row.state, row.status, row.cells.get("text")) == (state, status, text)


def test_a_data_source_that_copies_is_as_ready_as_it_says() -> None:
    source = made(kindtable.DATA_SOURCES, spec={"source": {"pvc": {"name": "golden"}}}, status=WELL_WRITTEN)
    assert one(objectrows.images(live((kindtable.DATA_SOURCES, [source])))).status == "ready"


@scripted
async def test_the_library_of_the_host_is_among_the_images() -> None:
    source = topics.source("images", images=Shelf())
    source_object = made(kindtable.DATA_SOURCES, spec=ADDRESS)
    assert [row.name for row in source.rows(live((kindtable.DATA_SOURCES, [source_object])))] == ["a"]  # type: ignore[attr-defined]
    async with Harness() as api:
        await source.poll(api.client(), "default")
    *_, row = source.rows(live((kindtable.DATA_SOURCES, [source_object])))
    assert isinstance(row, WebObjectRow)
    assert (row.name, row.status, row.cells["size"]) == ("debian.qcow2", "in the library", 2 << 30)
    assert row.keeps == "paddock image rm 0123456789ab removes it"


class Shelf(NoImages):
    """A library with one image."""

    async def library(self) -> list[WebLibraryImage]:
        source = "https://images.example/debian.qcow2"
        return [WebLibraryImage(digest="0123456789abcdef", name="debian.qcow2", source=source, size=2 << 30, created=NOW)]


def test_that_there_is_no_instance_is_no_reason() -> None:
    absent = [{"type": "Ready", "status": "False", "reason": "VMINotExists", "message": "VMI does not exist"}]
    starting = {**examples.vm(), "status": {"conditions": absent, "printableStatus": "WaitingForVolumeBinding"}}
    (row,) = MachineRows(CLOCK).rows(live((VM.target, [starting])))
    assert (row.status, row.reason) == ("WaitingForVolumeBinding", "")


def test_an_event_is_a_row() -> None:
    event = made(EVENTS, "web.1", involvedObject=None)
    event |= {
        "involvedObject": {"kind": "VirtualMachine", "name": "web"},
        "type": "Warning",
        "reason": "Failed",
        "message": "no",
        "count": 3,
    }
    event |= {"lastTimestamp": JUST_NOW, "source": {"component": "paddock"}}
    (row,) = topics.source("events").rows(live((EVENTS, [event])))
    assert (row.id, row.object, row.count, row.time, row.type) == (  # type: ignore[attr-defined]  # it is one of events
        "uid-web.1",
        "VirtualMachine/web",
        3,
        JUST_NOW,
        "Warning",
    )


@pytest.mark.parametrize("topic", topics.TOPICS)
def test_objects_that_say_nothing_make_rows_all_the_same(topic: WebTopic) -> None:
    bare = [(target, [{**made(target), "spec": {}, "status": {}}]) for target in topics.source(topic).kinds]
    rows = list(topics.source(topic).rows(live(*bare)))
    # Machines have no figures before the second sample; what fills no volume is no row of its own.
    assert bool(rows) is (topic != "usage")


# --- tasks ------------------------------------------------------------------------------------------------------------------


def tasks(*groups: tuple[Target[Data], Iterable[Data]]) -> list[WebTaskRow]:
    return TaskRows().rows(live(*groups))


def test_a_running_import_is_a_task_that_its_machine_keeps() -> None:
    filler = made(kindtable.DATA_VOLUMES, "root", spec={"source": {"http": {}}}, status={"phase": "ImportInProgress", "progress": "7%"})
    (task,) = tasks((kindtable.DATA_VOLUMES, [filler]), (VM.target, [with_disk()]))
    assert (task.title, task.state, task.percent, task.machine) == ("Import the volume root", "running", 7, "vm/default/web")
    assert task.keeps == "vm/default/web waits for this volume; delete the machine instead"
    (alone,) = tasks((kindtable.DATA_VOLUMES, [filler]))
    assert (alone.machine, alone.keeps) == ("", "")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"phase": "WaitForFirstConsumer"}, None),
        ({"phase": "Succeeded", "conditions": [{"type": "Ready", "lastTransitionTime": JUST_NOW}]}, "done"),
        ({"phase": "Succeeded", "conditions": [{"type": "Ready", "lastTransitionTime": LONG_AGO}]}, None),
        ({"phase": "Failed", "conditions": [{"type": "Running", "lastTransitionTime": JUST_NOW, "message": "404"}]}, "failed"),
    ],
    ids=["idle", "done", "old", "failed"],
)
def test_tasks_end(status: Data, state: str | None) -> None:
    found = tasks((kindtable.DATA_VOLUMES, [made(kindtable.DATA_VOLUMES, status=status)]))
    assert [each.state for each in found] == ([state] if state else [])
    assert all(each.keeps == "it has ended" for each in found)


@pytest.mark.parametrize(("phase", "state"), [("Running", "running"), ("", "running"), ("Failed", "failed"), ("Succeeded", "done")])
def test_a_migration_goes_by_its_phase(phase: str, state: str) -> None:
    migration = made(kindtable.MIGRATIONS, spec={"vmiName": "web"}, status={"phase": phase, "migrationState": {"endTimestamp": JUST_NOW}})
    (task,) = tasks((kindtable.MIGRATIONS, [migration]))
    assert (task.title, task.state) == ("Migrate web", state)


def test_a_restore_cannot_be_cancelled() -> None:
    restore = made(kindtable.RESTORES, spec={"target": {"name": "web"}, "virtualMachineSnapshotName": "before"})
    (task,) = tasks((kindtable.RESTORES, [restore]), (VM.target, [examples.vm()]))
    assert (task.title, task.machine) == ("Restore the snapshot before", "vm/default/web")
    assert task.keeps
