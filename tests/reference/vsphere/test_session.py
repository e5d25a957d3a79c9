"""The connection with a vCenter: TLS, logins, lost sessions, rotated credentials; and what is read over it."""

from pathlib import Path

import pytest
from pyVmomi import vim

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.examination import Examiner
from paddock_drivers.vsphere import factory, failures
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.session import VSphereConnection
from tests.coroutines import scripted
from tests.reference.vsphere.vcenter import Simulator, running, write_credentials

pytestmark = pytest.mark.reference


def names(connection: VSphereConnection) -> list[str]:
    return sorted(each.name for each in VSphereInventory(connection).every(vim.VirtualMachine, ("name",)))


def refused(connection: VSphereConnection) -> ProviderError:
    with pytest.raises(ProviderError) as caught, failures.mapped():
        names(connection)
    return caught.value


def test_the_authority_of_the_credentials_is_trusted_and_no_other(shared: Simulator, tmp_path: Path) -> None:
    assert len(names(shared.connection())) == 4
    write_credentials(tmp_path, "secret")
    error = refused(shared.connection(tmp_path))
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "certificate" in str(error) and "ca.crt" in str(error)
    assert names(shared.connection(tmp_path, TLS_INSECURE_SKIP_VERIFY="true"))


def test_a_lost_session_is_renewed_once_and_unseen(simulator: Simulator) -> None:
    connection = simulator.connection()
    names(connection)
    simulator.tell(logout=True)
    simulator.calls()
    assert len(names(connection)) == 4
    assert simulator.calls()["Login"] == 1


def test_rotated_credentials_are_read_when_the_session_is_lost(simulator: Simulator) -> None:
    connection = simulator.connection()
    names(connection)
    simulator.tell(password="newer", logout=True)
    simulator.calls()
    error = refused(connection)
    assert error.kind is ErrorKind.UNAUTHORIZED
    assert "secret" not in str(error)
    # An account is locked after some attempts: the same pair is not tried again soon.
    assert refused(connection).kind is ErrorKind.UNAUTHORIZED
    assert simulator.calls()["Login"] == 1
    write_credentials(simulator.credentials, "newer")
    assert len(names(connection)) == 4


def test_a_thousand_machines_are_read_in_a_handful_of_calls(vcsim: Path, tmp_path: Path) -> None:
    with running(vcsim, tmp_path, {"machine": 500}) as simulator:
        connection = simulator.connection()
        connection.content  # noqa: B018
        simulator.calls()
        assert len(names(connection)) == 1000
        assert sum(simulator.calls().values()) <= 3


def test_objects_are_found_by_name_and_by_path(shared: Simulator) -> None:
    inventory = VSphereInventory(shared.connection())
    for kind, texts in (
        (vim.ClusterComputeResource, ("DC0_C0", "/DC0/host/DC0_C0")),
        (vim.HostSystem, ("DC0_C0_H0", "DC0_C0/DC0_C0_H0")),
        (vim.Datastore, ("LocalDS_0", "/DC0/datastore/LocalDS_0")),
        (vim.Network, ("VM Network", "DC0_DVPG0")),
        (vim.Folder, ("/vm", "DC0/vm")),
        (vim.ResourcePool, ("DC0_C0/Resources", "/DC0/host/DC0_C0/Resources")),
        (vim.VirtualMachine, ("DC0_H0_VM0", "vm/DC0_H0_VM0")),
    ):
        for text in texts:
            assert isinstance(inventory.named(kind, text).ref, kind), text
    with pytest.raises(ProviderError) as caught:
        inventory.named(vim.Datastore, "nothing")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(ProviderError) as caught:
        inventory.named(vim.ResourcePool, "Resources")
    assert caught.value.kind is ErrorKind.INVALID_SPEC


def test_a_machine_is_found_by_its_instance_uuid_and_one_that_is_gone_is_not(simulator: Simulator) -> None:
    connection = simulator.connection()
    inventory = VSphereInventory(connection)
    machine = inventory.named(vim.VirtualMachine, "DC0_H0_VM0", paths=("config.instanceUuid",))
    assert inventory.machine_of(machine.properties["config.instanceUuid"]) == machine.ref
    assert inventory.machine_of("00000000-0000-0000-0000-000000000000") is None
    assert inventory.find(vim.VirtualMachine("vm-none", connection.adapter), ("name",)) is None
    gone = vim.VirtualMachine("vm-none", connection.adapter)
    assert [each.name for each in inventory.read([machine.ref, gone], ("name",))] == ["DC0_H0_VM0"]


@scripted
async def test_an_endpoint_is_examined(stocked: Simulator) -> None:
    async with factory.make(stocked.context()) as driver:
        assert isinstance(driver, Examiner)
        found = {each.check: (each.grade, each.text) for each in await driver.examine()}
    assert found["templates"] == ("good", "tmpl") and found["datacenters"] == ("good", "DC0")
    assert found["release"][1].startswith("VMware vCenter") and {grade for grade, _ in found.values()} == {"good"}


@scripted
async def test_an_endpoint_without_templates_is_named(shared: Simulator) -> None:
    async with factory.make(shared.context()) as driver:
        assert isinstance(driver, Examiner)
        (found,) = [each for each in await driver.examine() if each.check == "templates"]
    assert found.grade == "warning" and "images" in found.fix
