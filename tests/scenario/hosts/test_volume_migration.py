"""Volumes of running machines that move to other claims, on a whole host."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.enginefakes import FakeMachine
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.hosts.snapshotting import DV
from tests.scenario.why.faults import asked

KIND, API = "VirtualMachineInstanceMigration", "kubevirt.io/v1"
POLICIES = "migrations.kubevirt.io/v1alpha1"
LABEL = "kubevirt.io/volume-update-migration"


def disk(name: str, size: str = "1Gi", **spec: Any) -> Data:
    storage = {"resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": DV, "kind": "DataVolume", "metadata": {"name": name}, "spec": {"source": {"blank": {}}, "storage": storage}}


def at(*claims: str, strategy: str | None = "Migration") -> Data:
    """The change of a machine that puts its first volumes on these claims."""
    volumes = [{"name": f"v{number}", "dataVolume": {"name": name}} for number, name in enumerate(claims)]
    return {"spec": {"updateVolumesStrategy": strategy, "template": {"spec": {"volumes": volumes}}}}


async def running(host: FakeHost, *claims: str, **more: Any) -> Any:
    await host.make(*[disk(name) for name in claims])
    await asyncio.sleep(5)
    made = machine(volumes=at(*claims)["spec"]["template"]["spec"]["volumes"], **more)
    made["spec"]["template"]["metadata"] = {"labels": {"tier": "x", "app": "y"}}
    await host.make(made)
    return await host.running()


async def migrations(host: FakeHost) -> list[Data]:
    found = (await host.api.get(f"/apis/{API}/namespaces/default/virtualmachineinstancemigrations")).data["items"]
    return sorted(found, key=lambda each: each["metadata"]["creationTimestamp"])


async def uid_of(host: FakeHost, claim: str) -> str:
    return str((await host.get("PersistentVolumeClaim", "v1", claim))["metadata"]["uid"])


def lies_on(machine: FakeMachine) -> str:
    layer = machine.config.disks[0].layer
    return layer.path.parent.name if layer is not None else ""


async def condition(host: FakeHost, name: str, *, of: str = "vmi") -> Data | None:
    found = await (host.vmi() if of == "vmi" else host.vm())
    return next((each for each in found["status"]["conditions"] if each["type"] == name), None)


async def claims(host: FakeHost) -> list[str]:
    return [each["dataVolume"]["name"] for each in (await host.vmi())["spec"]["volumes"]]


@pytest.mark.spec("kubevirt", 229, 230)
@played
async def test_volumes_move_while_the_machine_runs(host: FakeHost, /) -> None:
    guest = await running(host, "a", "b")
    guest.copies_slowly = True
    await host.make(disk("c"), disk("d"))
    await asyncio.sleep(5)
    await host.change("web", at("c", "d"))
    await asyncio.sleep(3)
    vmi, vm = await host.vmi(), await host.vm()
    assert await claims(host) == ["c", "d"]
    moved = vmi["status"]["migratedVolumes"]
    assert [(each["volumeName"], each["sourcePVCInfo"]["claimName"], each["destinationPVCInfo"]["claimName"]) for each in moved] == [
        ("v0", "a", "c"),
        ("v1", "b", "d"),
    ]
    assert moved[0]["sourcePVCInfo"]["accessModes"] and list(moved[0]["destinationPVCInfo"]["requests"]) == ["storage"]
    assert vm["status"]["volumeUpdateState"]["volumeMigrationState"]["migratedVolumes"] == moved
    change = await condition(host, "VolumesChange")
    assert change is not None and (change["status"], change["message"]) == ("True", "migrate volumes: 40 % copied")
    assert await condition(host, "VolumesChange", of="vm") and not await condition(host, "RestartRequired", of="vm")
    (move,) = await migrations(host)
    assert move["metadata"]["labels"] == {LABEL: "web"} and "kubevirt.io/workloadUpdateMigration" in move["metadata"]["annotations"]
    assert move["metadata"]["name"].startswith("kubevirt-workload-update-") and move["status"]["phase"] == "Running"
    assert vmi["status"]["migrationState"]["migrationUid"] == move["metadata"]["uid"]
    assert vm["status"]["printableStatus"] == "Migrating"
    assert guest.moving["v0"].path.parent.name == await uid_of(host, "c")
    guest.copied("ready")
    await asyncio.sleep(3)
    vmi = await host.vmi()
    state = vmi["status"]["migrationState"]
    assert (state["completed"], state.get("failed", False)) == (True, False) and state["targetNodeDomainReadyTimestamp"]
    assert "migratedVolumes" not in vmi["status"] and await condition(host, "VolumesChange") is None
    (move,) = await migrations(host)
    assert move["status"]["phase"] == "Succeeded" and not guest.moving
    assert [each.layer.path.parent.name for each in guest.config.disks] == [await uid_of(host, "c"), await uid_of(host, "d")]
    vm = await host.vm()
    assert vm["status"]["printableStatus"] == "Running" and not await condition(host, "RestartRequired", of="vm")
    assert vm["status"]["observedGeneration"] == vm["status"]["desiredGeneration"]
    assert "VolumesMigrated" in await host.events()
    # And back.
    guest.copies_slowly = False
    await host.change("web", at("a", "b"))
    await asyncio.sleep(5)
    assert [each["status"]["phase"] for each in await migrations(host)] == ["Succeeded", "Succeeded"]
    assert [each.layer.path.parent.name for each in guest.config.disks] == [await uid_of(host, "a"), await uid_of(host, "b")]


@pytest.mark.spec("kubevirt", 229)
@played
async def test_a_hotplugged_volume_moves(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    await host.make(disk("b"), disk("c"), disk("d"))
    await asyncio.sleep(5)
    plugged = {"name": "more", "persistentVolumeClaim": {"claimName": "b", "hotpluggable": True}}
    devices = {"disks": [{"name": "v0", "disk": {"bus": "virtio"}}, {"name": "more", "disk": {"bus": "scsi"}}]}
    volumes = [*at("a")["spec"]["template"]["spec"]["volumes"], plugged]
    await host.change("web", {"spec": {"template": {"spec": {"volumes": volumes, "domain": {"devices": devices}}}}})
    await asyncio.sleep(5)
    assert [each.name for each in guest.config.disks] == ["v0", "more"]
    volumes = [
        {"name": "v0", "dataVolume": {"name": "c"}},
        {"name": "more", "persistentVolumeClaim": {"claimName": "d", "hotpluggable": True}},
    ]
    await host.change("web", {"spec": {"updateVolumesStrategy": "Migration", "template": {"spec": {"volumes": volumes}}}})
    await asyncio.sleep(5)
    assert [each["status"]["phase"] for each in await migrations(host)] == ["Succeeded"]
    places = [each.layer.path.parent.name for each in guest.config.disks if each.layer is not None]
    assert places == [await uid_of(host, "c"), await uid_of(host, "d")]
    assert await condition(host, "RestartRequired", of="vm") is None


@pytest.mark.spec("kubevirt", 233)
@played
async def test_the_change_waits_for_a_claim_that_is_not_there(host: FakeHost, /) -> None:
    await running(host, "a")
    await host.change("web", at("c"))
    await asyncio.sleep(3)
    change = await condition(host, "VolumesChange")
    assert change is not None and change["status"] == "False"
    assert change["message"].startswith("One of the destination volumes doesn't exist")
    assert await claims(host) == ["a"] and not await migrations(host)
    await host.make(disk("c"))
    await asyncio.sleep(10)
    assert await claims(host) == ["c"] and [each["status"]["phase"] for each in await migrations(host)] == ["Succeeded"]


@pytest.mark.spec("kubevirt", 234)
@played
async def test_the_old_claims_call_it_off(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    guest.copies_slowly = True
    old = guest.config
    await host.make(disk("c"), disk("d"))
    await asyncio.sleep(5)
    await host.change("web", at("c"))
    await asyncio.sleep(3)
    assert guest.moving
    await host.change("web", at("d"))
    await asyncio.sleep(3)
    failure = await condition(host, "Failure", of="vm")
    assert failure is not None and "only be reverted to the previous version" in failure["message"]
    await host.change("web", at("a"))
    await asyncio.sleep(5)
    change = await condition(host, "VolumesChange")
    assert change is not None and (change["status"], change["reason"]) == ("False", "VolumesChangeCancellation")
    vmi, vm = await host.vmi(), await host.vm()
    assert await claims(host) == ["a"] and "migratedVolumes" not in vmi["status"] and not await migrations(host)
    assert vmi["status"]["migrationState"]["completed"] and vmi["status"]["migrationState"]["failed"]
    assert not guest.moving and guest.config == old
    assert "volumeUpdateState" not in vm["status"] and await condition(host, "Failure", of="vm") is None
    assert (await asked(host, "vm/web")).cause is None
    # Another try is possible.
    guest.copies_slowly = False
    await host.change("web", at("c"))
    await asyncio.sleep(5)
    assert await claims(host) == ["c"] and await condition(host, "VolumesChange") is None


@pytest.mark.spec("kubevirt", 234)
@played
async def test_disks_that_change_over_are_not_called_off(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    await host.make(disk("c"))
    await asyncio.sleep(5)
    gate, change_over = asyncio.Event(), guest.change_over

    async def late() -> None:
        await gate.wait()
        await change_over()

    guest.change_over = late
    await host.change("web", at("c"))
    await asyncio.sleep(3)
    await host.change("web", at("a"))
    await asyncio.sleep(3)
    assert await claims(host) == ["c"]
    gate.set()
    await asyncio.sleep(5)
    # It arrived, and went back by another migration.
    assert await claims(host) == ["a"] and [each["status"]["phase"] for each in await migrations(host)] == ["Succeeded", "Succeeded"]
    assert guest.config.disks[0].layer.path.parent.name == await uid_of(host, "a")


@pytest.mark.spec("kubevirt", 233)
@pytest.mark.parametrize(
    ("device", "claims_", "why"),
    [
        ({"disk": {"bus": "virtio"}, "shareable": True}, ("c",), "invalid volumes to update with migration: shareable: [v0]"),
        ({"lun": {"bus": "scsi"}}, ("c",), "invalid volumes to update with migration: luns: [v0]"),
        ({"cdrom": {"bus": "sata"}}, ("c",), "the medium of a drive does not move while the machine runs: v0"),
        (None, ("c", "b"), "cannot migrate the VM. The volume v1 is RWO and not included in the migration volumes"),
    ],
)
@played
async def test_a_change_that_waits_for_a_restart(host: FakeHost, /, device: Data | None, claims_: tuple[str, ...], why: str) -> None:
    first = ("a", "b")[: len(claims_)]
    disks = [{"name": f"v{number}", "disk": {"bus": "virtio"}} for number in range(len(first))]
    if device is not None:
        disks[0] = {"name": "v0", **device}
    await running(host, *first, domain={"devices": {"disks": disks}})
    await host.make(disk("c"))
    await asyncio.sleep(5)
    await host.change("web", at(*claims_))
    await asyncio.sleep(3)
    restart = await condition(host, "RestartRequired", of="vm")
    assert restart is not None and restart["message"] == why
    assert await claims(host) == list(first) and not await migrations(host)


@pytest.mark.spec("kubevirt", 229)
@pytest.mark.parametrize("strategy", ["Replacement", None])
@played
async def test_without_the_strategy_a_restart_is_asked_for(host: FakeHost, /, strategy: str | None) -> None:
    await running(host, "a")
    await host.make(disk("c"))
    await asyncio.sleep(5)
    await host.change("web", at("c", strategy=strategy))
    await asyncio.sleep(3)
    assert await condition(host, "RestartRequired", of="vm") and await claims(host) == ["a"] and not await migrations(host)


@pytest.mark.spec("kubevirt", 230)
@played
async def test_a_failure_is_said_and_tried_again(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    guest.copies_slowly = True
    await host.make(disk("c"))
    await asyncio.sleep(5)
    await host.change("web", at("c"))
    await asyncio.sleep(3)
    guest.copied("failed", "No space left on device")
    await asyncio.sleep(3)
    (move,) = await migrations(host)
    assert move["status"]["phase"] == "Failed" and "No space left" in move["status"]["migrationState"]["failureReason"]
    assert (await condition(host, "VolumesChange") or {})["status"] == "True" and "FailedMigration" in await host.events()
    guest.copies_slowly = False
    await asyncio.sleep(30)
    assert [each["status"]["phase"] for each in await migrations(host)] == ["Failed", "Succeeded"]
    assert await condition(host, "VolumesChange") is None


@pytest.mark.spec("kubevirt", 235)
@played
async def test_an_instance_that_ends_on_its_way_needs_recovery(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    guest.copies_slowly = True
    await host.make(disk("c"))
    await asyncio.sleep(5)
    await host.change("web", at("c"))
    await asyncio.sleep(3)
    answer = await host.verb("web", "restart")
    assert answer.status == 409 and "VM recovery required: Volume migration failed" in str(answer.data)
    guest.crash("killed")
    await asyncio.sleep(30)
    (move,) = [each["status"] for each in await migrations(host)] or [{"phase": "Failed"}]
    assert move["phase"] == "Failed"
    recovery = await condition(host, "ManualRecoveryRequired", of="vm")
    assert recovery is not None and recovery["status"] == "True"
    assert (await host.vm())["status"]["printableStatus"] != "Running"
    moved = (await host.vm())["status"]["volumeUpdateState"]["volumeMigrationState"]["migratedVolumes"]
    assert moved[0]["sourcePVCInfo"]["claimName"] == "a"
    answer = await host.verb("web", "start")
    assert answer.status == 409
    await host.change("web", at("a"))
    again = await host.running()
    assert lies_on(again) == await uid_of(host, "a")
    assert await condition(host, "ManualRecoveryRequired", of="vm") is None
    assert "volumeUpdateState" not in (await host.vm())["status"]


@pytest.mark.spec("kubevirt", 232)
@played
async def test_an_instance_that_ends_after_its_disks_changed_over_starts_there(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    await host.make(disk("c"))
    await asyncio.sleep(5)
    change_over = guest.change_over

    async def dies() -> None:
        await change_over()
        guest.crash("killed")

    guest.change_over = dies
    await host.change("web", at("c"))
    await asyncio.sleep(60)
    assert await condition(host, "ManualRecoveryRequired", of="vm") is None
    again = await host.running()
    assert lies_on(again) == await uid_of(host, "c")


@pytest.mark.spec("kubevirt", 232)
@played
async def test_nothing_is_lost_when_paddock_ends_in_between(host: FakeHost, /) -> None:
    guest = await running(host, "a")
    guest.copies_slowly = True
    await host.make(disk("c"))
    await asyncio.sleep(5)
    await host.change("web", at("c"))
    for pause in (0.1, 0.3, 1.0, 3.0):
        await asyncio.sleep(pause)
        await host.end()
        await host.begin()
    await asyncio.sleep(5)
    assert guest.moving
    await host.end()
    guest.copied("ready")
    await host.begin()
    await asyncio.sleep(5)
    assert [each["status"]["phase"] for each in await migrations(host)] == ["Succeeded"]
    assert guest.config.disks[0].layer.path.parent.name == await uid_of(host, "c")


@pytest.mark.spec("kubevirt", 230)
@played
async def test_a_policy_bounds_the_bandwidth(host: FakeHost, /) -> None:
    guest = await running(host, "a", "b")
    guest.copies_slowly = True
    policies = {"wide": ({"tier": "x"}, "8Mi"), "narrow": ({"tier": "x", "app": "y"}, "2Mi"), "other": ({"no": "no"}, "1")}
    for name, (labels, limit) in policies.items():
        spec = {"selectors": {"virtualMachineInstanceSelector": labels}, "bandwidthPerMigration": limit}
        made = {"apiVersion": POLICIES, "kind": "MigrationPolicy", "metadata": {"name": name}, "spec": spec}
        await host.api.post(f"/apis/{POLICIES}/migrationpolicies", made)
    await host.make(disk("c"), disk("d"))
    await asyncio.sleep(5)
    await host.change("web", at("c", "d"))
    await asyncio.sleep(3)
    assert guest.speed == 1 << 20
    state = (await host.vmi())["status"]["migrationState"]
    assert state["migrationPolicyName"] == "narrow" and state["migrationConfiguration"] == {"bandwidthPerMigration": "2Mi"}


@pytest.mark.spec("kubevirt", 231)
@played
async def test_a_volume_on_its_way_belongs_to_the_machine(host: FakeHost, /) -> None:
    """Another machine does not get the claim that the guest still writes."""
    guest = await running(host, "a")
    guest.copies_slowly = True
    await host.make(disk("c"))
    await asyncio.sleep(5)
    await host.change("web", at("c"))
    await asyncio.sleep(3)
    await host.make(machine("other", volumes=at("a")["spec"]["template"]["spec"]["volumes"]))
    await asyncio.sleep(5)
    blocked = next(each for each in (await host.vmi("other"))["status"]["conditions"] if each["type"] == "Synchronized")
    assert blocked["reason"] == "PVCInUse"
