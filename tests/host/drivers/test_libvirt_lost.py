"""What others and interruptions leave of libvirt machines: domains that were undefined, and marks of copies that were cut off."""

from pathlib import Path
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock_drivers.libvirt import clones, clonexml, domainview, marks, xmltree
from paddock_drivers.libvirt.marks import MachineMarks, MarkedDisk
from tests.coroutines import played_by
from tests.host.drivers.libvirtd import Libvirtd
from tests.host.drivers.libvirtdisks import GIB, DiskBench, Refused, bench, holds, play, write

pytestmark = [pytest.mark.needs("libvirtd", "root", "qemu"), pytest.mark.slow]


async def undefined(found: DiskBench, id: str) -> None:
    """Undefine a domain as virsh does, and leave its files."""
    await found.connection.run(lambda conn: conn.lookupByUUIDString(id).undefineFlags(4))


@pytest.mark.spec("virtrigaud", 158, 159)
@played_by(play, "libvirtd")
async def test_a_machine_that_somebody_undefined_gets_its_disks_back_and_leaves_none(found: DiskBench, /) -> None:
    before = found.files()
    vm = await found.create("lost", data=("data",))
    root, data = await found.path(vm), await found.path(vm, "data")
    write(root, 9, 7)
    write(data, 11, 3)
    await undefined(found, vm)
    assert await found.create("lost", data=("data",)) == vm
    assert (await found.path(vm), await found.path(vm, "data")) == (root, data)
    assert holds(root, 9, 7) and holds(root, 7, 5) and holds(data, 11, 3)
    # Another owner of the name gets nothing of it.
    await undefined(found, vm)
    stranger = m.ObjectIdentity(uid="uid-other", namespace="other", name="lost")
    with Refused(ErrorKind.CONFLICT):
        await found.create("lost", owner=stranger)
    await found.driver.delete(m.DeleteRequest(id=vm, owner=m.ObjectIdentity(uid="uid-lost", namespace="tests", name="lost")))
    assert found.files() == before


@played_by(play, "libvirtd")
async def test_a_layer_is_not_given_back_to_the_machine_that_it_was_of(found: DiskBench, /) -> None:
    source = await found.create("base")
    clone = await found.clone(source, "above", linked=True)
    await undefined(found, source)
    with Refused(ErrorKind.CONFLICT):
        await found.create("base")
    assert holds(await found.path(clone), 7, 5)
    await found.driver.delete(m.DeleteRequest(id=source))
    assert holds(await found.path(clone), 7, 5)
    await found.delete(clone)
    assert not [each for each in found.files() if each.startswith(("base", "above"))]


@pytest.mark.spec("virtrigaud", 160)
@pytest.mark.parametrize("by", ["start", "delete", "repeat"])
@played_by(play, "libvirtd")
async def test_a_mark_of_a_copy_that_was_cut_off_goes(found: DiskBench, /, libvirtd: Libvirtd, by: str) -> None:
    source = await found.create("marked")
    # As a driver leaves it that ends before libvirt has begun the copy.
    mark = libvirtd.pool / "copied-root.qcow2.making"
    cut = await found.connection.run(begun, await found.path(source), source)
    mark.write_bytes(bytes(4096))
    await found.connection.run(lambda conn: conn.storagePoolLookupByName("default").refresh(0))
    if by == "start":
        await found.driver.validate(m.ValidateRequest())
        assert mark.exists(), "the clone still wants it"
        await undefined(found, cut)
        async with bench(libvirtd) as another:
            await another.driver.validate(m.ValidateRequest())
    elif by == "delete":
        await found.delete(cut)
    else:
        await found.power(source, m.PowerOp.ON)
        assert await found.clone(source, "copied") == cut
        assert not mark.exists()
        await found.delete(cut)
    assert not [each for each in found.files() if each.startswith("copied")]
    assert cut not in {each.id for each in (await found.driver.list_vms(m.ListVMsRequest())).vms}
    await found.delete(source)


def begun(conn: Any, root: Path, source: str) -> str:
    """Define the clone that a driver has begun, and return its id. In a thread."""
    request = m.CloneRequest(source_vm_id=source, target_name="copied", target_vm=m.ObjectIdentity(namespace="tests", name="copied"))
    uuid = clones.clone_uuid(request)
    view = domainview.parse(conn.lookupByUUIDString(source).XMLDesc(2))
    notes = {clonexml.CLONED_FROM: source, clonexml.CLONED_FOR: clones.whose(request)}
    disk = MarkedDisk("root", str(root.with_name("copied-root.qcow2")), GIB)
    known = MachineMarks(state=marks.INCOMPLETE, notes=notes, disks=(disk,))
    conn.defineXML(xmltree.text(clonexml.define(view, "copied", uuid, known)))
    return uuid
