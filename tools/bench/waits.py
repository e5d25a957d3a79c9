"""What a person waits for, beside what the network or the disk allows: pulls, snapshots, copies of disks, and the check of many files.

Times are those on the wall, of programs that do the same work in turns; of each the smallest counts. All of them synchronise the disk.
"""

import asyncio
import itertools
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from paddock.engine.storage.volumes import Volumes
from tools.bench import imports, pacedserver
from tools.bench.offline import PADDOCK, BenchError, Figure, environment, example_documents, many

RUNS = 3
_MIB = 1 << 20
_SLOW_LINK, _SLOW_FILE = 16 * _MIB, 192 * _MIB
_DATA, _DISK = 1024 * _MIB, 8192 * _MIB
_FILES = 2000
# One connection, and a pipe that writes no packed file.
_CURL = 'curl -sSf -o "$2/disk" "$1" && sync "$2/disk"'
_PIPE = 'curl -sSf "$1" | gunzip -c > "$2/disk" && sync "$2/disk"'
_PARSE = """
import pathlib, sys, yaml
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    with open(path) as file:
        list(yaml.load_all(file, yaml.CSafeLoader))
"""


def measure(folder: Path) -> list[Figure]:
    """Each figure stands beside what the same work takes otherwise."""
    for program in ("curl", "gunzip", "gzip"):
        if shutil.which(program) is None:
            raise BenchError(f"there is no {program}")
    return [*_pulls(folder), *_disks(folder), *_validate(folder)]


# --- pulls ------------------------------------------------------------------------------------------------------------------


def _pulls(folder: Path) -> Iterator[Figure]:
    www = folder / "www"
    www.mkdir()
    (www / "slow").write_bytes(random.Random(1).randbytes(_SLOW_FILE))
    with pacedserver.running(www, _SLOW_LINK) as address:
        text = f"one connection of curl; the server gives each {_SLOW_LINK // _MIB} MiB/s, and the file has {_SLOW_FILE // _MIB} MiB"
        yield _pull(folder, "pull of 192 MiB, a server that gives each connection 16 MiB/s", f"{address}/slow", (_CURL, text))
    imports.make_disk(www / "disk")
    subprocess.run(["gzip", "-1", str(www / "disk")], check=True)
    with imports.server(www) as address:
        yield _pull(folder, "pull of 1 GiB, packed with gzip, by loopback", f"{address}/disk.gz", (_PIPE, "curl and gunzip in a pipe"))
    shutil.rmtree(www)


def _pull(folder: Path, name: str, url: str, other: tuple[str, str]) -> Figure:
    script, text = other

    def ours(place: Path) -> None:
        imports.fetch(url, place)

    def theirs(place: Path) -> None:
        subprocess.run(["sh", "-c", script, "sh", url, str(place)], check=True)

    return _beside(folder, name, (ours, theirs), text)


# --- disks ------------------------------------------------------------------------------------------------------------------


def _disks(folder: Path) -> Iterator[Figure]:
    root = folder / "volumes"
    volumes = Volumes(root)
    volumes.prepare()
    disk = asyncio.run(volumes.create("source", _DISK)).layer.path
    chance = random.Random(2)
    with open(disk, "r+b") as file:
        for _ in range(_DATA // (4 * _MIB)):
            file.seek(chance.randrange(_DISK // (8 * _MIB)) * 8 * _MIB)
            file.write(chance.randbytes(4 * _MIB))
    subprocess.run(["sync", str(disk)], check=True)
    size = disk.stat().st_blocks * 512 // _MIB
    text = f"cp --sparse=always and sync of the same disk: 8 GiB with {size} MiB of data"

    def theirs(place: Path) -> None:
        subprocess.run(["cp", "--reflink=never", "--sparse=always", str(disk), str(place / "disk")], check=True)
        subprocess.run(["sync", str(place / "disk")], check=True)

    def copy(_: Path) -> None:
        asyncio.run(_away(volumes, volumes.clone("source", "copy", _DISK)))

    yield _beside(folder, "copy of a claim: 8 GiB with 940 MiB of data, on ext4", (copy, theirs), text)

    ids = itertools.count()

    def restored(_: Path) -> None:
        async def run(snapshot: str) -> None:
            await volumes.snapshot("source", snapshot)
            await volumes.restore(snapshot, "copy", _DISK)
            await volumes.delete("copy")
            await volumes.delete_snapshot(snapshot)

        asyncio.run(run(f"snapshot-{next(ids)}"))

    yield _beside(folder, "snapshot of the same disk, restored as another claim, both removed", (restored, theirs), text)
    shutil.rmtree(root)


async def _away(volumes: Volumes, made: object) -> None:
    await made  # type: ignore[misc]
    await volumes.delete("copy")


# --- files ------------------------------------------------------------------------------------------------------------------


def _validate(folder: Path) -> Iterator[Figure]:
    manifests = folder / "manifests"
    manifests.mkdir()
    for number, document in enumerate(many(example_documents(), _FILES)):
        (manifests / f"{number}.yaml").write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
    known = environment(folder / "bytecode")

    def ours(_: Path) -> None:
        subprocess.run([PADDOCK, "validate", "-f", str(manifests)], check=True, env=known, stdout=subprocess.DEVNULL)

    def theirs(_: Path) -> None:
        subprocess.run([sys.executable, "-c", _PARSE, str(manifests)], check=True, env=known)

    yield _beside(folder, "paddock validate, a directory of 2,000 files", (ours, theirs), "parsing the same files with libyaml in Python")


# --- in turns ---------------------------------------------------------------------------------------------------------------


def _beside(folder: Path, name: str, both: tuple[Callable[[Path], None], Callable[[Path], None]], text: str) -> Figure:
    taken = [(_seconds(folder, both[0]), _seconds(folder, both[1])) for _ in range(RUNS)]
    ours, theirs = min(one for one, _ in taken), min(one for _, one in taken)
    return Figure(name, ours, f"the other program: {text}", theirs)


def _seconds(folder: Path, work: Callable[[Path], None]) -> float:
    place = folder / "place"
    place.mkdir()
    start = time.monotonic()
    work(place)
    seconds = time.monotonic() - start
    shutil.rmtree(place)
    return seconds
