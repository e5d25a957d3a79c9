"""`paddock move` between two real hosts, with a guest that has data: there and back, killed in every phase, and undone."""

import asyncio
import contextlib
import hashlib
import os
from pathlib import Path

import pytest

from tests.host.guests import Shelf
from tests.host.moves.conftest import MARKER, OneAtATime, Pair
from tests.host.runs.conftest import VMS, Host

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.slow]
DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
STEPS = (
    "fence the source",
    "stop the source",
    "carry a disk web-",
    "is there:",
    "make the machine at the target",
    "release the machine at the target",
    "confirm the machine at the target",
)


async def marker(pair: Pair, host: object) -> str:
    async with pair.guest(host) as console:  # type: ignore[arg-type]
        return (await console.shell("head -n1 /dev/vdb", 60)).strip()


def test_a_machine_goes_there_and_back_with_its_data(pair: Pair) -> None:
    with OneAtATime(pair.hosts) as watcher:
        planned = pair.there.run("web", "--dry-run")
        assert planned.returncode == 0 and "carries disk data (web-data), 32Mi" in planned.stderr, planned.stderr
        assert asyncio.run(pair.is_off(pair.b)) and not asyncio.run(pair.is_off(pair.a))
        assert "moved to namespace default" in pair.there.good("web", "--verify")
        assert asyncio.run(marker(pair, pair.b)) == MARKER
        assert asyncio.run(pair.is_off(pair.a))
        assert "moved to namespace default" in pair.back.good("web", "--verify", "--replace")
        assert asyncio.run(marker(pair, pair.a)) == MARKER
        assert "deleted at" in pair.back.good("web", "--delete-source")
    assert watcher.looks > 20 and watcher.twice == []


def test_the_command_is_killed_in_every_phase(pair: Pair) -> None:
    with OneAtATime(pair.hosts) as watcher:
        killed = [step for step in STEPS if pair.there.killed_at(step, "web")]
        assert killed == list(STEPS)
        pair.there.good("web")
        assert asyncio.run(marker(pair, pair.b)) == MARKER
        for step in (
            "fence the machine at the target",
            "delete the machine at the target",
            "delete what was carried",
            "release the source",
        ):
            pair.there.killed_at(step, "web", "--undo")
        pair.there.run("web", "--undo")
        assert asyncio.run(marker(pair, pair.a)) == MARKER
        assert asyncio.run(pair.is_off(pair.b))
    assert watcher.twice == []


def test_each_server_is_killed_on_the_way(pair: Pair) -> None:
    with OneAtATime(pair.hosts) as watcher:
        for host in pair.hosts:
            for step in ("stop the source", "carry a disk web-root", "carry a disk web-data", "confirm the machine at the target"):
                process = pair.there.until_line(step, "web")
                host.kill()
                process.communicate(timeout=600)
                host.start()
            pair.there.good("web")
            assert asyncio.run(marker(pair, pair.b)) == MARKER
            if host is pair.a:
                pair.there.good("web", "--undo")
                assert asyncio.run(marker(pair, pair.a)) == MARKER
        assert asyncio.run(pair.is_off(pair.a))
    assert watcher.twice == []


_CARGO = 192 << 20


def cargo(url: str) -> dict[str, object]:
    """A machine that is off, with a disk that does not compress."""
    storage = {"resources": {"requests": {"storage": "256Mi"}}}
    template = {"metadata": {"name": "cargo-data"}, "spec": {"source": {"http": {"url": url}}, "storage": storage}}
    guest = {
        "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}},
        "volumes": [{"name": "data", "dataVolume": {"name": "cargo-data"}}],
    }
    spec = {"runStrategy": "Halted", "dataVolumeTemplates": [template], "template": {"spec": guest}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "cargo"}, "spec": spec}


def _room(host: Host) -> int:
    """Return the bytes of all files of a host; some go meanwhile."""
    size = 0
    for each in host.root.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            size += each.lstat().st_blocks * 512
    return size


def test_a_server_dies_while_the_bytes_of_a_disk_pass(hosts: Pair, web: Shelf, tmp_path: Path) -> None:
    """The API server of each side goes in the middle of a disk and comes back; the same command goes on."""
    image = tmp_path / "cargo.img"
    image.write_bytes(os.urandom(_CARGO))
    hosts.do(hosts.a, lambda talk: talk.make(VMS, cargo(web.put(image))))
    filled = f"{DISKS}/cargo-data"
    hosts.do(hosts.a, lambda talk: talk.until(filled, lambda found: found.get("status", {}).get("phase") == "Succeeded"))
    for host in hosts.hosts:
        empty = _room(hosts.b)
        process = hosts.there.until_line("carry a disk cargo-data", "cargo")
        while _room(hosts.b) < empty + (16 << 20):
            assert process.poll() is None
        host.kill()
        _, said = process.communicate(timeout=120)
        assert process.returncode == 2 and "nothing is lost" in said, said
        host.start()
        assert hosts.do(hosts.b, lambda talk: talk.get(f"{VMS}/cargo")) == {}
    hosts.there.good("cargo", "--verify")
    (line,) = [each for each in hosts.lines if "disk cargo-data is there" in each]
    with image.open("rb") as opened:
        digest = hashlib.sha256(opened.read() + bytes((256 << 20) - _CARGO)).hexdigest()
    assert line.endswith(f"{256 << 20} bytes, sha256 {digest}")
