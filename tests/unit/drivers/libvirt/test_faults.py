"""What goes wrong: interruptions, lost daemons, changes by others. Nothing is made twice, and nothing is left."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from paddock.base import reasons
from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played, run_by
from tests.unit.drivers.libvirt.conftest import Bench, NamedDisks, bench, request

pytest.importorskip("libvirt", reason="libvirt-python is not installed; it is built where libvirt-dev and pkg-config are")


def names(conn: Any) -> list[str]:
    return sorted(each.name() for each in conn.listAllDomains() if each.name() != "test")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


def on(name: str, act: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda conn: act(conn.lookupByName(name))


@played
async def test_a_creation_that_fails_leaves_nothing(one: Bench, /) -> None:
    one.disks.failing = 1
    with pytest.raises(ProviderError, match="the pool is away"):
        await one.create()
    assert await one.run(names) == [] and not one.disks.volumes
    assert await one.create() == await one.create()
    assert await one.run(names) == ["web"]


@pytest.mark.spec("virtrigaud", 36)
@run_by(asyncio.run)
async def test_a_creation_that_was_cut_off_goes_on_with_the_next_driver() -> None:
    disks = NamedDisks()
    disks.pause = asyncio.Event()
    # Another connection keeps libvirt's driver for tests, as a daemon outlives drivers.
    async with bench() as keeper, bench(disks, create_seconds=0) as first:
        await keeper.run(names)
        made = await first.driver.create(request())
        task = m.TaskStatusRequest(task=made.task)
        await until(lambda: disks.begun == 1)
        assert made.task is not None and not (await first.driver.task_status(task)).done
        await first.driver.close()
        disks.pause = None
        async with bench(disks) as second:
            told = await second.driver.task_status(task)
            assert "interrupted" in told.error
            with pytest.raises(ProviderError, match="still being created"):
                await second.driver.power(m.PowerRequest(id=made.id, op=m.PowerOp.ON))
            assert await second.create() == made.id
            assert (await second.driver.task_status(task)) == m.TaskStatusResponse(done=True)
            assert await second.run(names) == ["web"]
            await second.driver.delete(m.DeleteRequest(id=made.id))
            assert not disks.volumes and await second.run(names) == []


@run_by(asyncio.run)
async def test_a_graceful_task_keeps_its_deadline_over_a_restart() -> None:
    async with bench() as keeper, bench() as one:
        await keeper.run(names)
        made = await one.create()
        await one.driver.power(m.PowerRequest(id=made, op=m.PowerOp.ON))
        over = m.TaskStatusRequest(task=m.TaskRef(id=f"off:{made}:{int(time.time()) - 1}"))
        assert (await one.driver.task_status(over)) == m.TaskStatusResponse(done=True)
        assert (await one.describe(made)).power_state == "Off"


@played
async def test_another_owners_machine_is_left_alone(one: Bench, /) -> None:
    made = await one.create()
    stranger = m.ObjectIdentity(uid="stranger", namespace="b", name="web")
    for call in (
        one.driver.create(request(owner=stranger)),
        one.driver.delete(m.DeleteRequest(id=made, owner=stranger)),
        one.driver.power(m.PowerRequest(id=made, op=m.PowerOp.ON, owner=stranger)),
        one.driver.create(request("test", owner=stranger)),
    ):
        with pytest.raises(ProviderError) as refused:
            await call
        assert refused.value.kind is ErrorKind.CONFLICT
    assert (await one.describe(made)).power_state == "Off"


@played
async def test_a_machine_keeps_its_id_under_another_name(one: Bench, /) -> None:
    made = await one.create()
    await one.run(on("web", lambda domain: domain.rename("other")))
    assert (await one.describe(made)).exists and await one.create() == made
    assert [each.name for each in (await one.driver.list_vms(m.ListVMsRequest())).vms if each.id == made] == ["other"]
    await one.run(on("other", lambda domain: domain.undefine()))
    assert not (await one.describe(made)).exists
    await one.driver.delete(m.DeleteRequest(id=made))


@played
async def test_a_foreign_machine_is_listed_described_and_changed(one: Bench, /) -> None:
    foreign = next(each for each in (await one.driver.list_vms(m.ListVMsRequest())).vms if each.name == "test")
    assert (foreign.cpu, foreign.memory_mib, foreign.power_state, foreign.provider_raw["managed"]) == (2, 2048, "On", "false")
    assert (await one.describe("test")).exists
    await one.driver.power(m.PowerRequest(id=foreign.id, op=m.PowerOp.OFF))
    desired = p.encode(p.DesiredPayload(name="test", machine_class=p.ClassPayload(cpu=4, memory_mib=4096)))
    await one.driver.reconfigure(m.ReconfigureRequest(id=foreign.id, desired_json=desired))
    raw = json.loads((await one.describe(foreign.id)).provider_raw_json)
    assert (raw["cpus"], raw["memoryMiB"]) == ("4", "4096")
    # Nobody's disks are detached, because the driver gave it none.
    assert await one.run(on("test", lambda domain: "/guest/diskimage1" in domain.XMLDesc()))


@played
async def test_networks_and_documents_that_a_machine_does_not_get_are_named(one: Bench, /) -> None:
    lan = p.NetworkPayload(name="lan", network_name="default", model="e1000")
    made = await one.create(networks_json=p.encode_list((lan,)), user_data=b"#cloud-config\n")

    async def told(*networks: p.NetworkPayload, user_data: str = "#cloud-config\n") -> list[str]:
        user = p.UserDataPayload(cloud_init_data=user_data)
        hardware = p.ClassPayload(cpu=1, memory_mib=512)
        desired = p.DesiredPayload(name="web", machine_class=hardware, networks=networks or None, user_data=user)
        await one.driver.reconfigure(m.ReconfigureRequest(id=made, desired_json=p.encode(desired)))
        said = json.loads((await one.describe(made)).provider_raw_json).get("limitations", "[]")
        return [each.partition(":")[0] for each in json.loads(said)]

    assert await told(lan) == []
    assert await told(p.NetworkPayload(name="lan", network_name="default", model="virtio")) == ["networks"]
    assert await told() == await told(lan, p.NetworkPayload(name="wan")) == ["networks"]
    assert await told(lan, user_data="#cloud-config\nhostname: other\n") == ["userData"]
    assert await told(lan) == []


@run_by(asyncio.run)
async def test_an_endpoint_that_refuses_is_unavailable_and_no_machine_is_missing() -> None:
    async with bench(endpoint="qemu+unix:///system?socket=/nonexistent") as one:
        for call in (one.describe("web"), one.create(), one.driver.list_vms(m.ListVMsRequest())):
            with pytest.raises(ProviderError) as trouble:
                await call
            assert trouble.value.kind is ErrorKind.UNAVAILABLE
        answer = await one.driver.validate(m.ValidateRequest())
        assert not answer.ok and answer.message.startswith("Unavailable: libvirt cannot be reached")


def test_a_program_that_the_far_host_lacks_is_named() -> None:
    from paddock_drivers.libvirt import failures  # noqa: PLC0415 - without the library, tests skip

    error = failures.lost(RuntimeError("internal error: Remote command terminated with non-zero code: 127"))
    assert error.kind is ErrorKind.UNAVAILABLE and "nc, or virt-ssh-helper" in str(error) and "netcat-openbsd" in str(error)
    assert "see that libvirtd runs" in str(failures.lost(RuntimeError("Connection refused")))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("Remote command terminated with non-zero code: 127", reasons.HYPERVISOR_PROGRAM),
        ("Unable to resolve address 'lab' service '22': Name or service not known", reasons.ADDRESS_UNKNOWN),
        ("unable to connect to server at 'lab:22': Connection refused", reasons.HYPERVISOR_UNREACHABLE),
    ],
)
def test_a_way_that_is_closed_has_a_reason_code(words: str, reason: str) -> None:
    from paddock_drivers.libvirt import failures  # noqa: PLC0415 - without the library, tests skip

    assert failures.lost(RuntimeError(words)).reason_code == reason


@played
async def test_a_detached_disk_stays_and_comes_back(one: Bench, /) -> None:
    made = await one.create(disks_json=p.encode_list((p.DiskPayload(name="data", size_gib=2),)))

    async def wanted(*sizes: int) -> list[int]:
        disks = tuple(p.DiskPayload(name="data", size_gib=each) for each in sizes)
        desired = p.encode(p.DesiredPayload(name="web", machine_class=p.ClassPayload(cpu=1, memory_mib=512), disks=disks))
        await one.driver.reconfigure(m.ReconfigureRequest(id=made, desired_json=desired))
        entry = next(each for each in (await one.driver.list_vms(m.ListVMsRequest())).vms if each.id == made)
        return [each.size_gib for each in entry.disks]

    assert await wanted() == [1] and "/pool/web-data.qcow2" in one.disks.volumes
    assert await wanted(3) == [1, 3]


@played
async def test_a_list_knows_what_the_driver_changed_before_libvirt_tells(one: Bench, /) -> None:
    made = await one.create()
    await one.driver.list_vms(m.ListVMsRequest())
    # From here on no event arrives.
    one.connection.events._listeners.clear()
    desired = p.encode(
        p.DesiredPayload(name="web", machine_class=p.ClassPayload(cpu=1, memory_mib=512), disks=(p.DiskPayload(name="data", size_gib=3),))
    )
    await one.driver.reconfigure(m.ReconfigureRequest(id=made, desired_json=desired))
    entry = next(each for each in (await one.driver.list_vms(m.ListVMsRequest())).vms if each.id == made)
    assert [each.size_gib for each in entry.disks] == [1, 3]


@played
async def test_a_list_reads_only_what_changed(one: Bench, /) -> None:
    def define(conn: Any) -> None:
        for number in range(200):
            conn.defineXML(f"<domain type='test'><name>old-{number}</name><memory>1024</memory><os><type>hvm</type></os></domain>")

    before = len((await one.driver.list_vms(m.ListVMsRequest())).vms)
    await one.run(define)
    # The events of the definitions are on their way.
    await asyncio.sleep(0.2)
    listed = (await one.driver.list_vms(m.ListVMsRequest())).vms
    assert len(listed) == before + 200 and one.connection.events.attached
    changed = next(each.id for each in listed if each.name == "old-7")
    assert changed in one.driver._inventory._kept and len(one.driver._inventory._kept) == len(listed)
    await one.run(on("old-7", lambda domain: domain.create()))
    async with asyncio.timeout(10):
        while changed in one.driver._inventory._kept:
            await asyncio.sleep(0.01)
    assert len(one.driver._inventory._kept) == len(listed) - 1
    again = (await one.driver.list_vms(m.ListVMsRequest())).vms
    assert next(each for each in again if each.id == changed).power_state == "On"
