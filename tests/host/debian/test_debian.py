"""A Debian with its own cloud-init: what it makes of the seeds, under BIOS, and under Secure Boot with a TPM."""

import json
from pathlib import Path

import pytest

from paddock.base.seeds import configdrive, configfiles, nocloud
from paddock.base.seeds.seed import SeedIdentity, Texts
from tests.host.bare import Bare, boot, card, disk, uefi
from tests.host.conftest import Spawn, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "root", "mmdebstrap")]

_MINUTES = 15 * 60
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ2 somebody@here"
GUEST = SeedIdentity(uuid="6f1a4a8e-5f0b-5f5e-9a64-0f1a9d3a2b11", name="web.shop", hostname="web-1", public_keys=(KEY,))
USER = b"""#cloud-config
ssh_authorized_keys:
- ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBBB other@there
write_files:
- path: /etc/written
  content: by cloud-init
runcmd:
- [sh, -c, "echo it ran > /var/lib/it-ran"]
"""
# cloud-init of Debian 12 stumbles over "to: default".
NETWORK = b"""version: 2
ethernets:
  id0:
    match: {macaddress: "52:54:00:12:34:56"}
    set-name: eth0
    addresses: [10.0.2.77/24]
    routes: [{to: 0.0.0.0/0, via: 10.0.2.2}]
    nameservers: {addresses: [10.0.2.3]}
"""
OPENSTACK_NETWORK = {
    "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:12:34:56"}],
    "networks": [{"id": "n0", "link": "eth0", "type": "ipv4", "ip_address": "10.0.2.78", "netmask": "255.255.255.0", "routes": []}],
}


def finished(guest: Bare) -> dict[str, object]:
    """Return the final result of cloud-init."""
    guest.shell("cloud-init status --wait", _MINUTES)
    result: dict[str, object] = json.loads(guest.shell("cat /run/cloud-init/result.json"))["v1"]
    return result


def test_it_takes_everything_from_nocloud(debian_guest: Path, spawn: Spawn, work: Path) -> None:
    (work / "seed.iso").write_bytes(nocloud.seed(GUEST, Texts(USER, NETWORK)).image())
    (work / "config.iso").write_bytes(configfiles.config_map({"app.conf": "x = 1\n"}, {}).image())
    disks = [*disk(debian_guest, order=1), *disk(work / "seed.iso", "seed"), *disk(work / "config.iso", "config")]
    guest = boot(spawn, work, ["-M", "q35,hpet=off", "-m", "512", *disks, *card()], "login:", _MINUTES)
    result = finished(guest)
    assert result["errors"] == [] and str(result["datasource"]).startswith("DataSourceNoCloud")
    assert guest.shell("hostname") == "web-1\n"
    assert guest.shell("cat /var/lib/cloud/data/instance-id") == GUEST.uuid + "\n"
    assert guest.shell("cat /etc/written /var/lib/it-ran") == "by cloud-init" + "it ran\n"
    keys = guest.shell("cat /home/debian/.ssh/authorized_keys")
    assert KEY in keys and "other@there" in keys
    assert "10.0.2.77/24" in guest.shell("ip -4 addr")
    assert guest.shell("mount /dev/disk/by-label/cfgdata /mnt && cat /mnt/app.conf") == "x = 1\n"
    assert guest.ask("guest-get-osinfo")["id"] == "debian"


@pytest.mark.needs("ovmf", "swtpm")
def test_under_secure_boot_with_a_tpm_it_takes_everything_from_a_configdrive(debian_guest: Path, spawn: Spawn, work: Path) -> None:
    (work / "tpm").mkdir()
    spawn(["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={work}/tpm", "--ctrl", f"type=unixio,path={work}/tpm.sock"])
    wait_until("swtpm listens", (work / "tpm.sock").exists)
    tpm = ["-chardev", f"socket,id=tpm,path={work}/tpm.sock", "-tpmdev", "emulator,id=tpm0,chardev=tpm", "-device", "tpm-tis,tpmdev=tpm0"]
    (work / "seed.iso").write_bytes(configdrive.seed(GUEST, Texts(USER, json.dumps(OPENSTACK_NETWORK).encode())).image())
    disks = [*disk(debian_guest, order=1), *disk(work / "seed.iso", "seed")]
    options = ["-M", "q35,hpet=off,smm=on", "-m", "768", *uefi(work, secure=True), *tpm, *disks, *card()]
    guest = boot(spawn, work, options, "login:", _MINUTES)
    assert "SecureBoot enabled" in guest.shell("mokutil --sb-state")
    assert "[integrity]" in guest.shell("cat /sys/kernel/security/lockdown")
    assert guest.shell("cat /sys/class/tpm/tpm0/tpm_version_major") == "2\n"
    result = finished(guest)
    assert result["errors"] == [] and str(result["datasource"]).startswith("DataSourceConfigDrive")
    assert guest.shell("hostname") == "web-1\n"
    assert guest.shell("cat /var/lib/cloud/data/instance-id") == GUEST.uuid + "\n"
    assert guest.shell("cat /etc/written /var/lib/it-ran") == "by cloud-init" + "it ran\n"
    keys = guest.shell("cat /home/debian/.ssh/authorized_keys")
    assert KEY in keys and "other@there" in keys
    assert "10.0.2.78/24" in guest.shell("ip -4 addr")
