"""The tiny guest and the servers that the other tests lean on."""

import json
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.engine.images.build import tiny
from tests.host.conftest import Spawn, wait_until
from tests.host.guests import Registry, Shelf

pytestmark = pytest.mark.needs("qemu")

_BASE = (
    "qemu-system-x86_64",
    "-M",
    "q35,hpet=off",
    "-accel",
    "tcg,tb-size=64",
    "-cpu",
    "max",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
)


def start(spawn: Spawn, work: Path, options: list[str], memory: int = 192) -> Path:
    """A guest with a card; its serial console is the file that is returned."""
    log = work / "serial"
    words = [*_BASE, "-m", str(memory), "-serial", f"file:{log}", *options]
    spawn(words)
    wait_until("the guest is ready", lambda: log.exists() and "READY" in log.read_text(errors="replace"), 120)
    return log


def card(*forwards: tuple[str, int, int]) -> list[str]:
    """A card of QEMU's user network with ports of the host."""
    forwarded = "".join(f",hostfwd={protocol}:127.0.0.1:{host}-:{guest}" for protocol, host, guest in forwards)
    return ["-netdev", f"user,id=n0{forwarded}", "-device", "virtio-net-pci,netdev=n0,romfile="]


def overlay(disk: Path) -> list[str]:
    """The disk, with what is written thrown away."""
    return ["-drive", f"if=none,id=d0,format=qcow2,file={disk},snapshot=on", "-device", "virtio-blk-pci,drive=d0,bootindex=1"]


def test_it_answers_what_it_promises(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path, free_port: Callable[[], int]) -> None:
    http, echo = free_port(), free_port()
    kernel = ["-kernel", str(tiny_guest.bare), "-initrd", str(tiny_guest.initrd), "-append", "console=ttyS0 quiet"]
    start(spawn, work, [*kernel, *card(("tcp", http, 80), ("tcp", echo, 7), ("udp", echo, 7))])
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


def test_it_starts_from_its_disk_by_bios(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    log = start(spawn, work, [*overlay(tiny_guest.disk), *card()])
    assert "READY tiny 10.0.2.15" in log.read_text()


@pytest.mark.needs("ovmf")
def test_it_starts_from_its_disk_by_uefi(tiny_guest: tiny.TinyImage, spawn: Spawn, work: Path) -> None:
    variables = work / "vars"
    variables.write_bytes(Path("/usr/share/OVMF/OVMF_VARS_4M.fd").read_bytes())
    flash = ["-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"]
    flash += ["-drive", f"if=pflash,format=raw,unit=1,file={variables}"]
    start(spawn, work, [*flash, *overlay(tiny_guest.disk), *card()], memory=256)


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
