"""Machines on VMware's simulator: every attribute that is asked for, and changes of it."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyVmomi import vim

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind
from paddock.contract.payloads import (
    ClassPayload,
    DesiredPayload,
    DiskDefaultsPayload,
    DiskPayload,
    LimitsPayload,
    NetworkPayload,
    PerformancePayload,
    PlacementPayload,
    SecurityPayload,
)
from paddock_drivers.vsphere.inventory import VSphereInventory
from tests.coroutines import played_by, run_by
from tests.reference.vsphere.scripts import OWNER, SMALL, created, driven, machines, play, refused, request, settings
from tests.reference.vsphere.vcenter import Simulator, finished, running, template

pytestmark = pytest.mark.reference


@pytest.fixture
def simulator(stocked: Simulator) -> Simulator:
    return stocked


# --- what a machine has --------------------------------------------------------------------------------------------------------


def seed_vcenter(simulator: Simulator) -> None:
    """Name the simulator's objects as the document's example does."""
    inventory = VSphereInventory(simulator.connection())
    cluster = inventory.named(vim.ClusterComputeResource, "DC0_C0", paths=("resourcePool",))
    finished(cluster.ref.Rename_Task("Compute-Cluster"))
    shares = vim.ResourceAllocationInfo(
        limit=-1, reservation=0, expandableReservation=True, shares=vim.SharesInfo(level="normal", shares=0)
    )
    cluster.get("resourcePool").CreateResourcePool("Production", vim.ResourceConfigSpec(cpuAllocation=shares, memoryAllocation=shares))
    home = inventory.datacenter()
    home.get("vmFolder").CreateFolder("web")
    pod = home.get("datastoreFolder").CreateStoragePod("DatastoreCluster-SSD")
    finished(pod.MoveIntoFolder_Task([inventory.named(vim.Datastore, "LocalDS_0").ref]))
    finished(inventory.named(vim.Network, "DC0_DVPG0").ref.Rename_Task("PG-App-VLAN100"))


def of_the_document() -> m.CreateRequest:
    """The document's VirtualMachine, as the manager sends it."""
    # VMClass small, VMNetworkAttachment app-network and VirtualMachine web-server of the document, as the manager sends them.
    return request(
        class_json=payloads.encode(
            ClassPayload(
                cpu=2,
                memory_mib=4096,
                firmware="UEFI",
                disk_defaults=DiskDefaultsPayload(type="thin", size_gib=40),
                guest_tools_policy="install",
            )
        ),
        networks_json=payloads.encode_list((NetworkPayload(name="app-net", network_name="PG-App-VLAN100", portgroup="PG-App-VLAN100"),)),
        disks_json=payloads.encode_list((DiskPayload(name="data", size_gib=100, type="thin"),)),
        placement_json=payloads.encode(
            PlacementPayload(cluster="Compute-Cluster", resource_pool="Production", folder="/vm/web", storage_pod="DatastoreCluster-SSD")
        ),
        user_data=b"#cloud-config\nusers: []\n",
        meta_data=b"role: web\n",
    )


@pytest.mark.spec("virtrigaud", 45, 97)
@run_by(asyncio.run)
async def test_the_machine_of_the_documents_example_has_every_attribute(simulator: Simulator) -> None:
    seed_vcenter(simulator)
    wanted = of_the_document()

    async with driven(simulator) as driver:
        own = await created(driver, wanted)
        await driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON))
        seen = await driver.describe(m.DescribeRequest(id=own))
        assert (seen.exists, seen.power_state) == (True, "On")
        assert seen.console_url.startswith("https://") and "urn:vmomi:VirtualMachine:" in seen.console_url
        raw = msgspec.json.decode(seen.provider_raw_json, type=dict[str, str])
        assert (raw["cpus"], raw["memoryMiB"], raw["datastore"]) == ("2", "4096", "LocalDS_0")
        assert raw["host"].startswith("DC0_C0_H") and "limitations" not in raw
    (machine,) = machines(simulator)
    config = machine.config
    assert machine.parent.name == "web"
    assert machine.resourcePool.name == "Production"
    assert machine.runtime.host.parent.name == "Compute-Cluster"
    assert [each.name for each in machine.datastore] == ["LocalDS_0"]
    assert (config.hardware.numCPU, config.hardware.memoryMB, config.firmware) == (2, 4096, "efi")
    assert config.instanceUuid == OWNER.uid
    root, data = [each for each in config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]
    assert (root.capacityInKB, data.capacityInKB) == (40 << 20, 100 << 20)
    assert data.backing.thinProvisioned
    (card,) = [each for each in config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard)]
    portgroup = VSphereInventory(simulator.connection()).named(vim.Network, "PG-App-VLAN100").ref
    assert isinstance(card, vim.vm.device.VirtualVmxnet3) and card.backing.port.portgroupKey == portgroup.key
    extra = settings(machine)
    assert base64.b64decode(extra["guestinfo.userdata"]) == b"#cloud-config\nusers: []\n"
    meta = json.loads(base64.b64decode(extra["guestinfo.metadata"]))
    assert (meta["instance-id"], meta["local-hostname"], meta["role"]) == (OWNER.uid, "web-server", "web")
    assert (extra["paddock.owner-uid"], extra["paddock.owner"]) == (OWNER.uid, "default/web-server")
    assert not extra.get("paddock.pending")


@pytest.mark.spec("virtrigaud", 118, 119, 120)
@pytest.mark.spec("virtrigaud", 117, "skip, upgrade and uninstall as far as the provider can")
def test_a_class_reaches_the_machine_with_all_its_profiles(simulator: Simulator) -> None:
    profile = PerformancePayload(
        latency_sensitivity="low",
        cpu_hot_add_enabled=True,
        memory_hot_add_enabled=True,
        nested_virtualization=True,
        hyper_threading_policy="avoid",
    )
    limits = LimitsPayload(cpu_limit=4000, cpu_reservation=500, cpu_shares=3000, memory_limit_mib=4096, memory_reservation_mib=1024)
    hardware = ClassPayload(
        cpu=2,
        memory_mib=4096,
        firmware="UEFI",
        guest_tools_policy="upgrade",
        extra_config={"disk.EnableUUID": "TRUE", "vsphere.hardwareVersion": "vmx-15"},
        performance_profile=profile,
        security_profile=SecurityPayload(secure_boot=True, tpm_enabled=True, tpm_version="2.0", vtd_enabled=True),
        resource_limits=limits,
    )
    play(simulator, lambda driver: _make(driver, request(class_json=payloads.encode(hardware))))
    (machine,) = machines(simulator)
    config = machine.config
    assert (config.cpuHotAddEnabled, config.memoryHotAddEnabled, config.nestedHVEnabled) == (True, True, True)
    assert (config.latencySensitivity.level, config.flags.htSharing, config.flags.vvtdEnabled) == ("low", "none", True)
    assert (config.bootOptions.efiSecureBootEnabled, config.tools.toolsUpgradePolicy) == (True, "upgradeAtPowerCycle")
    assert (config.cpuAllocation.limit, config.cpuAllocation.reservation, config.cpuAllocation.shares.shares) == (4000, 500, 3000)
    assert (config.memoryAllocation.limit, config.memoryAllocation.reservation) == (4096, 1024)
    assert any(isinstance(each, vim.vm.device.VirtualTPM) for each in config.hardware.device)
    assert settings(machine)["disk.EnableUUID"] == "TRUE" and config.version == "vmx-15"


async def _make(driver: Driver, wanted: m.CreateRequest) -> None:
    await created(driver, wanted)


@pytest.mark.spec("virtrigaud", 50)
def test_static_addresses_find_their_cards_by_the_addresses_that_vsphere_gave_them(simulator: Simulator) -> None:
    lan = NetworkPayload(name="lan", network_name="VM Network", static_ip="192.0.2.7", prefix=24, gateway="192.0.2.1")
    own = NetworkPayload(name="own", network_name="DC0_DVPG0", mac_address="00:50:56:01:02:03")
    play(simulator, lambda driver: _make(driver, request(networks_json=payloads.encode_list((lan, own)))))
    (machine,) = machines(simulator)
    first, second = [each for each in machine.config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard)]
    network = json.loads(base64.b64decode(settings(machine)["guestinfo.metadata"]))["network"]
    assert network["ethernets"]["lan"]["match"]["macaddress"] == first.macAddress
    assert network["ethernets"]["lan"]["addresses"] == ["192.0.2.7/24"]
    assert (second.addressType, second.macAddress) == ("manual", "00:50:56:01:02:03")


# --- changes ------------------------------------------------------------------------------------------------------------------


def desired(**members: Any) -> str:
    return payloads.encode(DesiredPayload(**{"name": "web-server", "machine_class": SMALL, **members}))


@pytest.mark.spec("virtrigaud", 39, 41)
@run_by(asyncio.run)
async def test_a_running_machine_refuses_what_needs_it_off_and_takes_the_rest(simulator: Simulator) -> None:
    hot = PerformancePayload(cpu_hot_add_enabled=True)

    async with driven(simulator) as driver:
        own = await created(driver, request(class_json=payloads.encode(ClassPayload(cpu=2, memory_mib=4096, performance_profile=hot))))
        await driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON))
        larger = ClassPayload(cpu=4, memory_mib=4096, performance_profile=hot)
        await driver.reconfigure(m.ReconfigureRequest(id=own, desired_json=desired(machine_class=larger)))
        for refusing in (ClassPayload(cpu=4, memory_mib=8192), ClassPayload(cpu=1, memory_mib=4096)):
            error = await refused(driver.reconfigure(m.ReconfigureRequest(id=own, desired_json=desired(machine_class=refusing))))
            assert error.kind is ErrorKind.CONFLICT and "power it off" in str(error)
        simulator.calls()
        await driver.reconfigure(m.ReconfigureRequest(id=own, desired_json=desired(machine_class=larger)))
        assert "ReconfigVM_Task" not in simulator.calls()
    (machine,) = machines(simulator)
    assert (machine.config.hardware.numCPU, machine.config.hardware.memoryMB) == (4, 4096)


@played_by(play, "simulator")
async def test_cards_follow_the_desired_networks(driver: Driver, /, simulator: Simulator) -> None:
    lan, app = NetworkPayload(name="lan", network_name="VM Network"), NetworkPayload(name="app", network_name="DC0_DVPG0")

    def cards(machine: Any) -> list[str]:
        found = [each for each in machine.config.hardware.device if isinstance(each, vim.vm.device.VirtualEthernetCard)]
        return ["app" if hasattr(each.backing, "port") else str(each.backing.deviceName) for each in found]

    own = await created(driver, request(networks_json=payloads.encode_list((lan,))))
    (machine,) = machines(simulator)
    assert cards(machine) == ["VM Network"]
    for wanted, names in (((lan, app), ["VM Network", "app"]), ((app,), ["app"]), ((app, lan), ["app", "VM Network"])):
        await driver.reconfigure(m.ReconfigureRequest(id=own, desired_json=desired(networks=wanted)))
        assert sorted(cards(machine)) == sorted(names)
    listed = next(each for each in (await driver.list_vms(m.ListVMsRequest())).vms if each.id == own)
    assert sorted(each.name for each in listed.networks) == ["app", "lan"]


@run_by(asyncio.run)
async def test_hardware_is_upgraded_while_it_is_off(simulator: Simulator) -> None:
    async with driven(simulator) as driver:
        own = await created(driver)
        assert (await driver.hardware_upgrade(m.HardwareUpgradeRequest(id=own, target_version=15))).task is None
        await driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON))
        error = await refused(driver.hardware_upgrade(m.HardwareUpgradeRequest(id=own, target_version=17)))
        assert error.kind is ErrorKind.CONFLICT
    (machine,) = machines(simulator)
    assert machine.config.version == "vmx-15"


@run_by(asyncio.run)
async def test_an_older_api_refuses_what_it_lacks_and_runs_the_rest(vcsim: Path, tmp_path: Path) -> None:
    with running(vcsim, tmp_path, {"api": "6.5"}) as simulator:
        template(simulator, "DC0_H0_VM0", "tmpl")
        modern = ClassPayload(cpu=1, memory_mib=512, firmware="UEFI", security_profile=SecurityPayload(vtd_enabled=True, tpm_enabled=True))

        async with driven(simulator) as driver:
            error = await refused(driver.create(request(class_json=payloads.encode(modern))))
            assert error.kind is ErrorKind.NOT_SUPPORTED and "vtdEnabled" in str(error) and "tpmEnabled" in str(error)
            assert machines(simulator) == []
            await created(driver)
        assert len(machines(simulator)) == 1


# --- many ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 73, 113)
@run_by(asyncio.run)
async def test_a_thousand_machines_are_listed_in_a_handful_of_calls(vcsim: Path, tmp_path: Path) -> None:
    with running(vcsim, tmp_path, {"machine": 500}) as simulator:
        async with driven(simulator) as driver:
            await driver.validate(m.ValidateRequest())
            simulator.calls()
            vms = (await driver.list_vms(m.ListVMsRequest())).vms
            assert len(vms) == len({each.id for each in vms}) == 1000
            assert all(each.cpu and each.disks and each.networks and each.provider_raw["managed"] == "false" for each in vms)
            assert sum(simulator.calls().values()) <= 5
            # One is described and changed as any machine of the driver's own.
            assert (await driver.describe(m.DescribeRequest(id=vms[0].id))).exists
            simulator.calls()
            for each in vms[:100]:
                await driver.describe(m.DescribeRequest(id=each.id))
            assert sum(simulator.calls().values()) <= 200
            for each in vms[:100]:
                await driver.describe(m.DescribeRequest(id=each.id))
            assert sum(simulator.calls().values()) <= 100


@played_by(play, "simulator")
async def test_hosts_have_what_their_guests_leave(driver: Driver, /) -> None:
    found = (await driver.list_hosts(m.ListHostsRequest())).hosts
    assert [each.id for each in found] == ["DC0_C0_H0", "DC0_C0_H1", "DC0_C0_H2", "DC0_H0"]
    assert all(each.health is m.HostHealth.READY and each.allocatable_mem_mib and each.cpu_model for each in found)
    assert await driver.get_host_info(m.GetHostInfoRequest(host_id="DC0_H0")) == found[-1]
    assert (await refused(driver.get_host_info(m.GetHostInfoRequest(host_id="none")))).kind is ErrorKind.NOT_FOUND
