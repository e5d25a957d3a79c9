"""The pure parts of building an image: archives, partition tables, and what apt and kernels say."""

import os
import stat
import struct
import subprocess
import zlib
from pathlib import Path
from uuid import UUID

import pytest

from paddock.base.images.build import answers, disk, kernel, tiny, tinyguest
from paddock.base.images.build.disk import Partition
from paddock.base.images.build.initramfs import archive
from paddock.base.images.build.packages import Package, PackageMember, parse_uris
from paddock.base.images.build.programs import BuildError

MIB = 1 << 20
_SHA = "0123456789abcdef" * 4


def entries(cpio: bytes) -> list[tuple[str, int, bytes]]:
    """(name, mode, data) of a "newc" archive, by its book."""
    at = 0
    found: list[tuple[str, int, bytes]] = []
    while True:
        assert cpio[at : at + 6] == b"070701"
        fields = [int(cpio[at + 6 + 8 * number : at + 14 + 8 * number], 16) for number in range(13)]
        name = cpio[at + 110 : at + 110 + fields[11] - 1].decode()
        data_at = at + (110 + fields[11] + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found.append((name, fields[1], cpio[data_at : data_at + fields[6]]))
        at = data_at + (fields[6] + 3) // 4 * 4


def test_an_archive_has_every_directory_before_what_is_in_it() -> None:
    files = {
        "usr/sbin/x": PackageMember(0o755, b"run"),
        "init": PackageMember(0o777, target="bin/busybox"),
        "etc/y": PackageMember(0o640, b"text!"),
    }
    found = entries(archive(files, ("var/log",)))
    names = [name for name, _, _ in found]
    assert names == ["dev", "dev/console", "etc", "etc/y", "init", "usr", "usr/sbin", "usr/sbin/x", "var", "var/log"]
    modes = {name: mode for name, mode, _ in found}
    assert (modes["usr/sbin/x"], modes["etc/y"]) == (stat.S_IFREG | 0o755, stat.S_IFREG | 0o640)
    assert stat.S_ISLNK(modes["init"]) and stat.S_ISCHR(modes["dev/console"]) and stat.S_ISDIR(modes["var/log"])
    assert {name: data for name, _, data in found}["init"] == b"bin/busybox"
    assert archive(files) == archive(dict(reversed(files.items())))


def test_a_partition_table_and_its_copy() -> None:
    partitions = [
        Partition(disk.BIOS_BOOT, "bios", MIB),
        Partition(disk.EFI_SYSTEM, "efi", 3 * MIB + 1),
        Partition(disk.LINUX, "data", MIB),
    ]
    placed, size = disk.place(partitions)
    assert [(one.first, one.last) for one in placed] == [(2048, 4095), (4096, 12287), (12288, 14335)]
    head, tail = disk.table(placed, size, "name")
    assert (head[510:512], head[450]) == (b"\x55\xaa", 0xEE)
    last = size // 512 - 1
    for header, here, other, array in ((head[512:1024], 1, last, head[1024:]), (tail[-512:], last, 1, tail[:-512])):
        assert header[:8] == b"EFI PART"
        assert struct.unpack("<QQ", header[24:40]) == (here, other)
        assert zlib.crc32(header[:16] + bytes(4) + header[20:92]) == struct.unpack("<I", header[16:20])[0]
        assert zlib.crc32(array) == struct.unpack("<I", header[88:92])[0]
        kinds = [UUID(bytes_le=array[start : start + 16]) for start in (0, 128, 256)]
        assert kinds == [disk.BIOS_BOOT, disk.EFI_SYSTEM, disk.LINUX]
    assert disk.table(placed, size, "name") == (head, tail)
    assert disk.table(placed, size, "other") != (head, tail)


def test_a_disk_is_written_sparse_and_whole(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"begin" + bytes(9 * MIB) + b"end")
    placed, size = disk.place([Partition(disk.BIOS_BOOT, "bios", MIB, b"core"), Partition(disk.LINUX, "x", 10 * MIB, tmp_path / "content")])
    disk.write(tmp_path / "x.raw", placed, size, b"\xeb\x63 boot")
    whole = (tmp_path / "x.raw").read_bytes()
    assert (len(whole), whole[:7], whole[510:512]) == (size, b"\xeb\x63 boot", b"\x55\xaa")
    assert whole[MIB : MIB + 4] == b"core"
    assert whole[2 * MIB : 11 * MIB + 8] == (tmp_path / "content").read_bytes()
    assert (tmp_path / "x.raw").stat().st_blocks * 512 < 4 * MIB


def test_grub_is_told_where_its_pieces_are() -> None:
    boot = disk.boot_sector(bytes(range(256)) * 2, 2048)
    assert len(boot) == 440
    assert struct.unpack("<Q", boot[0x5C:0x64])[0] == 2048 and boot[0x66:0x68] == b"\x90\x90"
    core = disk.core_image(bytes(1500), 2048)
    assert (len(core), struct.unpack("<QHH", core[0x1F4:0x200])) == (1536, (2049, 2, 0x820))


def test_what_apt_offers() -> None:
    printed = f"'http://deb/b.deb' b_1%3a2_amd64.deb 12 SHA256:{_SHA}\n'http://deb/a.deb' a_1_all.deb 7 SHA256:{_SHA}\n"
    assert parse_uris(printed, ["a", "b"]) == (Package("a_1_all.deb", 7, _SHA), Package("b_1%3a2_amd64.deb", 12, _SHA))
    with pytest.raises(BuildError, match="apt offers no c"):
        parse_uris(printed, ["a", "c"])


def test_modules_come_after_what_they_need() -> None:
    def module(needs: str) -> bytes:
        return b"ELF\0license=GPL\0depends=" + needs.encode() + b"\0name=x\0"

    have = {"virtio_net": module("net_failover,virtio_ring"), "net_failover": module("failover"), "failover": module("")}
    have |= {"virtio_ring": module(""), "virtio-rng": module("virtio_ring"), "unwanted": module("")}
    assert list(kernel.ordered(have, ["virtio_net", "virtio_rng", "built_in"])) == [
        *("failover", "net_failover", "virtio_ring", "virtio_net", "virtio-rng"),
    ]


def test_each_script_of_the_guest_is_one(tmp_path: Path) -> None:
    for name, member in tinyguest.contents().items():
        if member.data.startswith(b"#!"):
            assert member.mode == 0o755, name
            (tmp_path / "script").write_bytes(member.data)
            subprocess.run(["sh", "-n", tmp_path / "script"], check=True)


def test_a_cut_kernel_configuration_is_noticed() -> None:
    text = kernel.fragment()
    kernel._check_configuration(text)
    with pytest.raises(BuildError, match="VIRTIO_NET"):
        kernel._check_configuration(text.replace("CONFIG_VIRTIO_NET=y\n", ""))


@pytest.mark.parametrize(
    "meta",
    [
        '{"instance-id": "i-1", "local-hostname": "web"}',
        '{"local-hostname": "web", "public-keys": {"0": "ssh-rsa A"}}',
        "local-hostname: web\n",
    ],
)
def test_the_guest_reads_its_name_in_any_layout(meta: str, tmp_path: Path) -> None:
    script = tinyguest.contents()["sbin/seed"].data.decode()
    (tmp_path / "meta-data").write_text(meta)
    lines = [line for line in script.splitlines() if line.startswith(("said()", "tr "))]
    text = "\n".join(lines).replace("/run/meta-data", str(tmp_path / "lines")).replace("$meta", str(tmp_path / "meta-data"))
    done = subprocess.run(["sh", "-c", f"{text}\nsaid local-hostname {tmp_path}/lines"], capture_output=True, text=True, check=True)
    assert done.stdout == "web\n"


def test_the_tiny_guest_does_not_test_its_timer() -> None:
    """On a busy host the kernel's test of the timer fails under emulation, and the kernel panics, again and again."""
    assert "no_timer_check" in tiny._ARGUMENTS.split()


def test_uefi_starts_the_signed_kernel_with_the_same_arguments() -> None:
    lines = tiny.start().splitlines()
    assert [line.split()[0] for line in lines] == ["linux", "initrd", "boot"]
    assert lines[0].split()[1:] == ["/vmlinuz", *tiny._ARGUMENTS.split()]


def test_a_plain_module_has_neither_signature_nor_types() -> None:
    code = b"\x7fELF\0.text\0.BTF\0.BTF_ids\0"
    signature = bytes(700)
    signed = code + signature + bytes(8) + len(signature).to_bytes(4, "big") + kernel._SIGNED
    assert kernel.plain_module(signed) == kernel.plain_module(code) == b"\x7fELF\0.text\0.btf\0.BTF_ids\0"


def test_the_newest_image_is_one_of_this_recipe(tmp_path: Path) -> None:
    def built(name: str, time: int) -> Path:
        disk = tmp_path / name / "tiny.qcow2"
        disk.parent.mkdir()
        disk.touch()
        os.utime(disk, (time, time))
        return disk

    built("tiny-debian-0123456789abcdef", 9)
    built(f"tiny-own-{tiny._RECIPE - 1}-a", 9)
    assert tiny.newest(tmp_path) is None
    built(f"tiny-debian-{tiny._RECIPE}-a", 1)
    newer = built(f"tiny-debian-{tiny._RECIPE}-b", 2)
    assert tiny.newest(tmp_path) == newer
    assert built(f"tiny-own-{tiny._RECIPE}-a", 1) == tiny.newest(tmp_path)


def test_an_answer_of_apt_holds_until_its_lists_change(tmp_path: Path) -> None:
    lists, question = tmp_path / "lists", ["debian", "busybox"]
    lists.mkdir()
    (lists / "main").write_text("a")
    os.utime(lists / "main", (1, 1))
    apt = [str(lists), str(tmp_path / "absent")]
    assert answers.remembered(tmp_path, "debian", question, apt) == ""
    answers.remember(tmp_path, "debian", question, "tiny-debian-1", apt)
    assert answers.remembered(tmp_path, "debian", question, apt) == "tiny-debian-1"
    assert answers.remembered(tmp_path, "debian", [*question, "x"], apt) == ""
    os.utime(tmp_path / "answer-debian.json", (1, 1))
    assert answers.remembered(tmp_path, "debian", question, apt) == ""
    answers.remember(tmp_path, "debian", question, "tiny-debian-1", apt)
    os.utime(lists / "main", (2, 2))
    assert answers.remembered(tmp_path, "debian", question, apt) == ""
    (tmp_path / "answer-debian.json").write_text("[")
    assert answers.remembered(tmp_path, "debian", question, apt) == ""
