"""The cost of an import: CPU time and time on the wall of `Images.fetch`, beside curl and `qemu-img convert -O raw` of the same image.

Ours is a process that fetches into an empty library, counted from when it is up, as a server is; the disk is synchronised. Theirs is two
processes, one after the other. Both take turns, and of each the smallest counts. The server is on loopback.
"""

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tools.bench.offline import BenchError, Figure, cpu_seconds

RUNS = 5
_MIB = 1 << 20
_FORMATS = {
    "raw": ["-O", "raw"],
    "qcow2": ["-O", "qcow2"],
    "qcow2, compressed": ["-O", "qcow2", "-c"],
    "vmdk, streamOptimized": ["-O", "vmdk", "-o", "subformat=streamOptimized"],
}
_OURS = """
import asyncio, json, resource, sys, time
from pathlib import Path
from paddock.base.images.library import ImageLibrary, ImageSettings
from paddock.base.images.sources import Http
async def run():
    images = ImageLibrary(Path(sys.argv[2]), ImageSettings(allow=("127.0.0.1",), proxies={}))
    await images.fetch(Http(sys.argv[1]))
    await images.close()
def used():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
import paddock.base.images.importer
cpu, wall = used(), time.monotonic()
asyncio.run(run())
print(json.dumps([used() - cpu, time.monotonic() - wall]))
"""
_THEIRS = 'curl -sSf -o "$2/body" "$1" && qemu-img convert -f "$3" -O raw "$2/body" "$2/disk"'


def measure(folder: Path) -> list[Figure]:
    """Two figures for each format."""
    for program in ("curl", "qemu-img"):
        if shutil.which(program) is None:
            raise BenchError(f"there is no {program}")
    (folder / "www").mkdir()
    make_disk(folder / "disk.raw")
    figures: list[Figure] = []
    with server(folder / "www") as address:
        for name, options in _FORMATS.items():
            image = folder / "www" / "image"
            subprocess.run(["qemu-img", "convert", "-f", "raw", *options, str(folder / "disk.raw"), str(image)], check=True)
            figures += _compare(name, f"{address}/image", options[1], folder)
            image.unlink()
    return figures


def make_disk(path: Path) -> None:
    """A gigabyte, as those of cloud images are: a quarter of it data that can be packed to a half, the rest zeros."""
    chance = random.Random(1)
    with path.open("wb") as file:
        for position in range(0, 1024, 4):
            file.seek(position * _MIB)
            file.write(b"".join(chance.randbytes(2048) + bytes(2048) for _ in range(256)))
        file.truncate(1024 * _MIB)


def _compare(name: str, url: str, kind: str, folder: Path) -> Iterator[Figure]:
    cpu: dict[str, list[float]] = {"ours": [], "theirs": []}
    wall: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(RUNS + 1):
        for who in cpu:
            place = folder / who
            place.mkdir()
            taken = fetch(url, place) if who == "ours" else _theirs(url, place, kind, folder)
            cpu[who].append(taken[0])
            wall[who].append(taken[1])
            shutil.rmtree(place)
    for what, times in (("CPU", cpu), ("wall", wall)):
        ours, theirs = (min(times[who][1:]) for who in ("ours", "theirs"))
        reference = f"{ours * 1000:.0f} ms to {theirs * 1000:.0f} ms of curl and qemu-img convert"
        yield Figure(f"{name}, {what}", ours / theirs, reference)


def fetch(url: str, place: Path) -> tuple[float, float]:
    """Fetch into an empty library; CPU time and time on the wall."""
    said = subprocess.run([sys.executable, "-c", _OURS, url, str(place)], check=True, capture_output=True).stdout
    cpu, wall = json.loads(said)
    return cpu, wall


def _theirs(url: str, place: Path, kind: str, folder: Path) -> tuple[float, float]:
    start = time.monotonic()
    cpu = cpu_seconds(["sh", "-c", _THEIRS, "sh", url, str(place), kind], bytecode=folder / "bytecode")
    return cpu, time.monotonic() - start


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a web server on loopback that has the files of a directory."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()
