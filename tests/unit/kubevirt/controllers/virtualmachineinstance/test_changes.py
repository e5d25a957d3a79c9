"""Changes of a machine that runs, and what its guest says."""

import asyncio
from typing import Any

import pytest

from paddock.engine.machine import guest
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.guest import GuestInterface
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES
from tests.coroutines import played
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import CORE, GIB, Host
from tests.unit.kubevirt.controllers.virtualmachineinstance.test_waiting import bind, claim

INTERFACE: dict[str, Any] = {"name": "default", "masquerade": {}}
CARD: dict[str, Any] = {"devices": {"interfaces": [INTERFACE]}, "networks": [{"name": "default", "pod": {}}]}


async def spec(host: Host, document: dict[str, Any]) -> None:
    """Change the spec as a controller above does: users may not."""
    await host.api.client().patch(INSTANCES, Key("default", "web"), merge_patch({"spec": document}))


async def with_disk(host: Host, **volume: Any) -> None:
    disks = [{"name": "more", "disk": {"bus": "scsi"}, "serial": "more"}]
    await spec(host, {"domain": {"devices": {"disks": disks}}, "volumes": [{"name": "more", **volume}]})


@played
async def test_a_disk_is_plugged_when_its_claim_is_there_and_unplugged(host: Host, /) -> None:
    machine = await host.running()
    await with_disk(host, persistentVolumeClaim={"claimName": "disk", "hotpluggable": True})
    await asyncio.sleep(1)
    (volume,) = (await host.status())["volumeStatus"]
    assert (volume["phase"], volume["name"]) == ("Pending", "more")
    assert "does not exist" in volume["message"]
    uid = await claim(host, bound=False)
    await bind(host, uid)
    await asyncio.sleep(1)
    (volume,) = (await host.status())["volumeStatus"]
    assert volume["phase"] == "Ready"
    (disk,) = machine.config.disks
    assert (disk.name, disk.bus, disk.serial, disk.hotplugged) == ("more", "scsi", "more", True)
    assert (await host.conditions())["Ready"][0] == "True"
    await spec(host, {"domain": {"devices": {"disks": None}}, "volumes": None})
    await asyncio.sleep(1)
    assert machine.config.disks == ()
    assert [reason for reason, _ in await host.events()][-2:] == ["VolumeReady", "VolumeUnplugged"]


ROOT: dict[str, Any] = {"name": "root", "disk": {"bus": "virtio"}}
SCRATCH: dict[str, Any] = {"name": "root", "emptyDisk": {"capacity": "1Mi"}}
MORE: dict[str, Any] = {"name": "more", "disk": {"bus": "scsi"}}
PLUGGED: dict[str, Any] = {"name": "more", "persistentVolumeClaim": {"claimName": "disk", "hotpluggable": True}}


@played
async def test_a_disk_is_plugged_beside_those_it_was_started_with(host: Host, /) -> None:
    machine = await host.running(devices={"disks": [ROOT]}, volumes=[SCRATCH])
    await bind(host, await claim(host, bound=False))
    await spec(host, {"domain": {"devices": {"disks": [ROOT, MORE]}}, "volumes": [SCRATCH, PLUGGED]})
    await asyncio.sleep(1)
    assert [disk.name for disk in machine.config.disks] == ["root", "more"]
    assert [each.get("phase") for each in (await host.status())["volumeStatus"]] == [None, "Ready"]


@played
async def test_a_machine_that_kept_what_was_plugged_starts_and_gets_it_again(host: Host, /) -> None:
    await bind(host, await claim(host, bound=False))
    machine = await host.running(devices={"disks": [ROOT, MORE]}, volumes=[SCRATCH, PLUGGED])
    await asyncio.sleep(1)
    assert [(disk.name, disk.hotplugged) for disk in machine.config.disks] == [("root", False), ("more", True)]


@played
async def test_links_go_down_and_up(host: Host, /) -> None:
    machine = await host.running(**CARD)
    (card,) = (await host.status())["interfaces"]
    assert (card["name"], card["linkState"]) == ("default", "up")
    await spec(host, {"domain": {"devices": {"interfaces": [{**INTERFACE, "state": "down"}]}}})
    await asyncio.sleep(1)
    assert not machine.observed.nics["default"].link_up
    assert (await host.status())["interfaces"][0]["linkState"] == "down"


@pytest.mark.parametrize("way", ["it leaves the spec", "its state is absent"])
@played
async def test_an_interface_is_unplugged(host: Host, /, way: str) -> None:
    lan = {"name": "lan", "bridge": {}}
    networks = [*CARD["networks"], {"name": "lan", "multus": {"networkName": "lan"}}]
    machine = await host.running(devices={"interfaces": [INTERFACE, lan]}, networks=networks)
    assert [nic.name for nic in machine.config.nics] == ["default", "lan"]
    if way == "it leaves the spec":
        await spec(host, {"domain": {"devices": {"interfaces": [INTERFACE]}}, "networks": CARD["networks"]})
    else:
        await spec(host, {"domain": {"devices": {"interfaces": [INTERFACE, {**lan, "state": "absent"}]}}})
    await asyncio.sleep(1)
    assert [nic.name for nic in machine.config.nics] == ["default"]
    assert [each["name"] for each in (await host.status())["interfaces"]] == ["default"]


@played
async def test_sockets_and_memory_grow(host: Host, /) -> None:
    domain = {"cpu": {"sockets": 1, "maxSockets": 4}, "memory": {"guest": "2Gi", "maxGuest": "4Gi"}}
    machine = await host.running(domain=domain)
    await spec(host, {"domain": {"cpu": {"sockets": 3}, "memory": {"guest": "4Gi"}}})
    await asyncio.sleep(1)
    assert (machine.observed.sockets, machine.observed.memory) == (3, 4 * GIB)
    status = await host.status()
    assert status["currentCPUTopology"]["sockets"] == 3
    assert (status["memory"]["guestAtBoot"], status["memory"]["guestCurrent"]) == ("2Gi", "4Gi")


@played
async def test_sockets_that_are_refused_need_a_restart_until_they_are_taken(host: Host, /) -> None:
    domain = {"cpu": {"sockets": 1, "maxSockets": 4}, "memory": {"guest": "2Gi", "maxGuest": "4Gi"}}
    machine = await host.running(domain=domain)
    taken, room = machine.set_sockets, False

    async def full(count: int) -> None:
        if not room:
            raise RequestRefused("cannot add 2 processors", reason="EmulationFull", why="there is no room")
        await taken(count)

    machine.set_sockets = full  # type: ignore[method-assign]
    await spec(host, {"domain": {"cpu": {"sockets": 3}, "memory": {"guest": "4Gi"}}})
    await asyncio.sleep(1)
    assert (machine.observed.sockets, machine.observed.memory) == (1, 4 * GIB)
    conditions = await host.conditions()
    assert conditions["HotVCPUChange"] == ("False", "RestartRequired") and "HotMemoryChange" not in conditions
    room = True
    machine.observe(resets=1)
    await asyncio.sleep(1)
    assert machine.observed.sockets == 3 and "HotVCPUChange" not in await host.conditions()


@played
async def test_a_disk_grows_with_its_claim(host: Host, /) -> None:
    uid = await claim(host)
    machine = await host.running(volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}])
    await machine.resize_disk("root", GIB)
    await host.api.merge(f"{CORE}/persistentvolumeclaims/disk", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    await asyncio.sleep(1)
    assert machine.observed.disks["root"].size == 2 * GIB
    held = host.engine.volumes.get(uid)
    assert held is not None and held.size == 2 * GIB
    assert (await host.status())["volumeStatus"][0]["size"] == 2 * GIB


# --- the guest ------------------------------------------------------------------------------------------------------------


@played
async def test_what_the_agent_says_stands_in_the_status(host: Host, /) -> None:
    machine = await host.running(**CARD)
    mac = (await host.status())["interfaces"][0]["mac"]
    machine.agent.told_interfaces = (GuestInterface("eth0", mac, (("10.0.2.2", 24),)),)
    machine.agent.connect()
    await asyncio.sleep(5)
    status = await host.status()
    assert status["guestOSInfo"]["name"] == "Paddock Test Linux"
    assert status["interfaces"][0]["interfaceName"] == "eth0"
    assert status["interfaces"][0]["ipAddress"] != "10.0.2.2"
    assert (await host.conditions())["AgentConnected"] == ("True", None)
    machine.agent.disconnect()
    await asyncio.sleep(5)
    assert "AgentConnected" not in await host.conditions()


@played
async def test_cloud_init_says_how_it_went(host: Host, /) -> None:
    machine = await host.running(volumes=[{"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config"}}])
    files = {"/run/cloud-init/status.json": b'{"v1": {"stage": "init"}}'}
    machine.agent.run = lambda argv: guest.GuestExecResult(0, files.get(argv[-1], b""), b"")
    machine.agent.connect()
    await asyncio.sleep(5)
    assert (await host.conditions())["CloudInitFinished"] == ("Unknown", "Running")
    files["/run/cloud-init/result.json"] = b'{"v1": {"errors": ["runcmd"]}}'
    await asyncio.sleep(30)
    assert (await host.conditions())["CloudInitFinished"] == ("False", "ModuleFailed")


@played
async def test_keys_and_passwords_are_kept_in_the_guest(host: Host, /) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"a": "ssh-ed25519 AAA one\n"}}
    await host.post(f"{CORE}/secrets", secret)
    credential = {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": {"qemuGuestAgent": {"users": ["fedora"]}}}
    machine = await host.running(accessCredentials=[{"sshPublicKey": credential}])
    machine.agent.connect()
    await asyncio.sleep(2)
    assert machine.agent.authorized == {"fedora": ("ssh-ed25519 AAA one",)}
    assert (await host.conditions())["AccessCredentialsSynchronized"][0] == "True"
    await host.api.merge(f"{CORE}/secrets/keys", {"stringData": {"a": "ssh-ed25519 BBB two\n"}})
    await asyncio.sleep(2)
    assert machine.agent.authorized == {"fedora": ("ssh-ed25519 BBB two",)}
    machine.agent.refuse["add_keys"] = "no such user"
    await host.api.merge(f"{CORE}/secrets/keys", {"stringData": {"a": "ssh-ed25519 CCC three\n"}})
    await asyncio.sleep(2)
    assert (await host.conditions())["AccessCredentialsSynchronized"][0] == "False"


@played
async def test_a_probe_decides_whether_a_machine_is_ready(host: Host, /) -> None:
    probe = {"exec": {"command": ["is-ready"]}, "periodSeconds": 5}
    machine = await host.running(readinessProbe=probe)
    assert (await host.conditions())["Ready"] == ("False", "ContainersNotReady")
    machine.agent.connect()
    await asyncio.sleep(10)
    assert (await host.conditions())["Ready"] == ("True", None)
    machine.agent.run = lambda argv: guest.GuestExecResult(1, b"", b"")
    await asyncio.sleep(20)
    assert (await host.conditions())["Ready"] == ("False", "ContainersNotReady")


@played
async def test_a_machine_that_does_not_live_is_ended(host: Host, /) -> None:
    machine = await host.running(livenessProbe={"guestAgentPing": {}, "periodSeconds": 5, "failureThreshold": 2})
    machine.agent.connect()
    await asyncio.sleep(30)
    assert (await host.status())["phase"] == "Running"
    machine.agent.disconnect()
    await asyncio.sleep(30)
    assert (await host.status())["phase"] == "Failed"
    assert "Unhealthy" in [reason for reason, _ in await host.events()]
