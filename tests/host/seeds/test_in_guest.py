"""Seeds as others read them: xorriso, the kernel of a guest, and what the tiny guest makes of cloud-init's."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from paddock.base.seeds import configdrive, configfiles, nocloud
from paddock.base.seeds.seed import Seed, SeedIdentity, Texts
from tests.host.bare import boot, card, disk
from tests.host.conftest import Spawn

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ2 somebody@here"
GUEST = SeedIdentity(uuid="6f1a4a8e-5f0b-5f5e-9a64-0f1a9d3a2b11", name="web.shop", hostname="web-1", public_keys=(KEY,))
USER = b"""#cloud-config
ssh_authorized_keys:
- ssh-ed25519 BBBB other@there
runcmd:
- [sh, -c, "echo it ran > /run/it-ran"]
- touch /run/second
"""
MANY = {
    "k" * 253: b"a long name",
    "gr\u00fc\u00dfe-\u65e5\u672c\u8a9e.txt": b"unicode",
    "deep/er/and/deep/er/still/and/deep/er/than/allowed": b"deep",
    "big": bytes(range(256)) * 4000,
    **{f"key-{number:04}.conf": str(number).encode() for number in range(300)},
}


def kernel(guest: tiny.TinyImage) -> list[str]:
    """A start without a boot loader."""
    return ["-M", "q35,hpet=off", "-m", "192", "-kernel", str(guest.bare), "-initrd", str(guest.initrd), "-append", "console=ttyS0 quiet"]


@pytest.mark.needs("xorriso")
@pytest.mark.parametrize("reading", [[], ["-read_fs", "norock"]], ids=["rock-ridge", "joliet"])
def test_xorriso_reads_every_file(reading: list[str], work: Path) -> None:
    files = MANY if not reading else {name: data for name, data in MANY.items() if len(name) < 64}
    (work / "x.iso").write_bytes(configfiles.config_map({}, files).image())
    extract = ["-osirrox", "on", "-indev", str(work / "x.iso"), "-extract", "/", str(work / "out")]
    subprocess.run(["xorriso", *reading, *extract], check=True, capture_output=True)
    found = {str(path.relative_to(work / "out")): path.read_bytes() for path in (work / "out").rglob("*") if path.is_file()}
    subprocess.run(["chmod", "-R", "u+w", work / "out"], check=True)
    assert found == files


@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 75)
@pytest.mark.parametrize("make", [nocloud.seed, configdrive.seed], ids=["nocloud", "configdrive"])
def test_cloud_init_data_takes_effect(
    make: Callable[[SeedIdentity, Texts], Seed], tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path
) -> None:
    (work / "seed.iso").write_bytes(make(GUEST, Texts(USER)).image())
    options = kernel(tiny_guest)
    guest = boot(spawn, work, [*options, *disk(work / "seed.iso", "seed"), *card()])
    assert "READY web-1" in guest.console()
    assert guest.shell("cat /root/.ssh/authorized_keys").splitlines() == [KEY, "ssh-ed25519 BBBB other@there"]
    assert guest.shell("cat /run/it-ran /run/second") == "it ran\n"
    result = json.loads(guest.shell("cat /run/cloud-init/result.json"))
    assert result["v1"]["errors"] == [] and result["v1"]["datasource"].lower().startswith(f"datasource{make.__module__.rsplit('.')[-1]}")


@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 76)
def test_a_guest_reads_configuration_files(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    (work / "config.iso").write_bytes(configfiles.config_map({}, MANY).image())
    (work / "secret.iso").write_bytes(configfiles.secret({"password": b"s\0t"}, "my-secret").image())
    options = kernel(tiny_guest)
    guest = boot(spawn, work, [*options, *disk(work / "config.iso", "c"), *disk(work / "secret.iso", "s")])
    guest.shell("mount -t iso9660 -o ro,utf8 $(findfs LABEL=cfgdata) /mnt")
    names = guest.shell("cd /mnt && find . -type f | sort").splitlines()
    assert {name.removeprefix("./") for name in names} == set(MANY)
    assert guest.shell("sha256sum </mnt/big").split()[0] == hashlib.sha256(MANY["big"]).hexdigest()
    guest.shell("umount /mnt && mount -t iso9660 $(findfs LABEL=my-secret) /mnt")
    assert guest.shell("od -An -c /mnt/password").split() == ["s", "\\0", "t"]
