"""The tiny guest and the servers that the other tests lean on."""

import json
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.bare import boot, card, disk, uefi
from tests.host.conftest import Spawn
from tests.host.guests import Registry, Shelf

pytestmark = pytest.mark.needs("qemu")

_PC = ("-M", "q35,hpet=off", "-m", "192")


def bare_kernel(guest: tiny.TinyImage) -> list[str]:
    """A start without a boot loader."""
    return [*_PC, "-kernel", str(guest.bare), "-initrd", str(guest.initrd), "-append", "console=ttyS0 quiet"]


def test_it_answers_what_it_promises(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path, free_port: Callable[[], int]) -> None:
    http, echo = free_port(), free_port()
    guest = boot(spawn, work, [*bare_kernel(tiny_guest), *card(("tcp", http, 80), ("tcp", echo, 7), ("udp", echo, 7))])
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/", timeout=20) as answer:
        assert answer.read() == b"tiny\n"
    with socket.create_connection(("127.0.0.1", echo), timeout=20) as stream:
        stream.sendall(b"over TCP")
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(100) == b"over TCP"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(20)
        datagrams.sendto(b"over UDP", ("127.0.0.1", echo))
        assert datagrams.recv(100) == b"over UDP"
    lease = guest.shell("cat /run/net/eth0/lease")
    assert "10.0.2.15" in lease and "10.0.2.2" in lease


def test_its_agent_does_what_is_asked_of_agents(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    guest = boot(spawn, work, [*bare_kernel(tiny_guest), *disk(tiny_guest.disk), *card()])
    assert guest.ask("guest-get-osinfo")["id"] == "paddock-tiny"
    assert guest.ask("guest-get-host-name") == {"host-name": "tiny"}
    assert {"eth0", "lo"} <= {one["name"] for one in guest.ask("guest-network-get-interfaces")}
    assert [one["mountpoint"] for one in guest.ask("guest-get-fsinfo")] == ["/data"]
    assert guest.ask("guest-fsfreeze-freeze") == 1
    assert guest.ask("guest-fsfreeze-status") == "frozen"
    assert guest.ask("guest-fsfreeze-thaw") == 1
    guest.ask("guest-ssh-add-authorized-keys", {"username": "tiny", "keys": ["ssh-ed25519 AAAA x"]})
    assert guest.ask("guest-ssh-get-authorized-keys", {"username": "tiny"}) == {"keys": ["ssh-ed25519 AAAA x"]}
    guest.ask("guest-set-user-password", {"username": "tiny", "password": "c2VjcmV0", "crypted": False})
    assert guest.shell("grep ^tiny: /etc/shadow").startswith("tiny:$6$")


@pytest.mark.parametrize("bus", ["virtio", "sata"])
def test_it_starts_from_its_disk_by_bios(bus: str, tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    if bus == "sata" and tiny_guest.flavour != "own":
        pytest.skip("needs own-kernel: Debian's cloud kernel knows no SATA; `paddock image build tiny --kernel own` makes one that does")
    drive = disk(tiny_guest.disk, order=1)
    if bus == "sata":
        drive[-1] = "ide-hd,drive=d0,bootindex=1"
    guest = boot(spawn, work, [*_PC, *drive, *card()])
    assert "READY tiny 10.0.2.15" in guest.console()
    assert guest.shell("echo kept > /data/x && cat /data/x") == "kept\n"


@pytest.mark.needs("ovmf")
def test_it_starts_from_its_disk_by_uefi(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    guest = boot(spawn, work, [*_PC, "-m", "512", *uefi(work), *disk(tiny_guest.disk, order=1), *card()])
    assert "SecureBoot" in guest.shell("ls /sys/firmware/efi/efivars")


@pytest.mark.needs("ovmf")
def test_with_debians_kernel_it_starts_under_secure_boot(tiny_signed: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    guest = boot(spawn, work, ["-M", "q35,hpet=off,smm=on", "-m", "512", *uefi(work, secure=True), *disk(tiny_signed.disk, order=1)])
    assert guest.shell("od -An -tu1 /sys/firmware/efi/efivars/SecureBoot-*").split()[-1] == "1"


def test_the_registry_serves_what_was_pushed(registry: Registry, work: Path) -> None:
    (work / "x").write_bytes(b"content")
    reference = registry.push("disks/x:1", {"disk/x.img": work / "x"})
    with urllib.request.urlopen(f"http://{reference.replace('/disks', '/v2/disks').replace(':1', '/manifests/1')}", timeout=5) as answer:
        index = json.load(answer)
    assert index["manifests"][0]["platform"] == {"architecture": "amd64", "os": "linux"}


def test_the_web_server_serves_what_was_put(web: Shelf, work: Path) -> None:
    (work / "x").write_bytes(b"content")
    with urllib.request.urlopen(web.put(work / "x"), timeout=5) as answer:
        assert answer.read() == b"content"
