"""`paddock cp`: files and directories both ways, whole, right, with their modes, and nowhere else."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from paddock.cli.commands import cp
from paddock.fleet.guests import copying
from paddock.fleet.guests.copying import CopyFailed
from paddock.fleet.guests.guest import GuestRefused, NoAgent
from tests.coroutines import scripted
from tests.unit.app.subresources.world import World
from tests.unit.fleet.guests.local import reached, with_agent


def nothing(done: int, total: int) -> None:
    """No progress."""


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A directory of the guest."""
    folder = tmp_path / "guest"
    folder.mkdir()
    return folder


def parts_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if ".paddock-" in path.name)


@pytest.mark.parametrize(
    ("text", "machine", "path"),
    [
        ("web:/etc/hosts", "web", "/etc/hosts"),
        ("vm/web:/etc", "vm/web", "/etc"),
        ("web:", "web", ""),
        ("./a:b", "", "./a:b"),
        ("/a:b", "", "/a:b"),
        ("~/a:b", "", "~/a:b"),
        ("file", "", "file"),
        (":x", "", ":x"),
    ],
)
def test_the_sides_of_a_copy(text: str, machine: str, path: str) -> None:
    assert cp.end_of(text) == (machine, path)


@pytest.mark.parametrize("size", [0, 5, copying.PART, copying.PART * 2 + 7])
@scripted
async def test_a_file_there_and_back(size: int, tmp_path: Path, guest: Path) -> None:
    source, data = tmp_path / "file", os.urandom(size)
    source.write_bytes(data)
    source.chmod(0o751)
    shown: list[tuple[int, int]] = []
    async with World() as world:
        await with_agent(world)
        async with reached(world) as access:
            place = await copying.send(access, source, str(guest), lambda done, total: shown.append((done, total)))
            assert place == str(guest / "file")
            assert (guest / "file").read_bytes() == data and (guest / "file").stat().st_mode & 0o777 == 0o751
            assert shown[-1] == (size, size)
            here, left_out = await copying.fetch(access, str(guest / "file"), tmp_path / "back", nothing)
    assert (here, left_out) == (tmp_path / "back", [])
    assert here.read_bytes() == data and here.stat().st_mode & 0o777 == 0o751
    assert not parts_in(tmp_path)


@scripted
async def test_a_file_that_is_there_is_replaced_in_one_step_and_through_links(tmp_path: Path, guest: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    (guest / "target").write_bytes(b"a much longer old content")
    (guest / "link").symlink_to(guest / "target")
    async with World() as world:
        await with_agent(world)
        async with reached(world) as access:
            await copying.send(access, tmp_path / "new", str(guest / "link"), nothing)
    assert (guest / "link").is_symlink() and (guest / "target").read_bytes() == b"new" and not parts_in(guest)


@scripted
async def test_names_are_nobodys_commands(tmp_path: Path, guest: Path) -> None:
    name = "a b'$(touch x)\"; -n"
    (tmp_path / name).write_bytes(b"data")
    async with World() as world:
        await with_agent(world)
        async with reached(world) as access:
            await copying.send(access, tmp_path / name, f"{guest}/{name}", nothing)
            here, _ = await copying.fetch(access, f"{guest}/{name}", tmp_path / "back", nothing)
    assert [path.name for path in guest.iterdir()] == [name] and here.read_bytes() == b"data"


def tree(folder: Path) -> Path:
    """A directory with everything that one has."""
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "run").write_bytes(b"#!/bin/sh\n")
    (folder / "sub" / "run").chmod(0o755)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("sub/run")
    return folder


@scripted
async def test_directories_there_and_back(tmp_path: Path, guest: Path) -> None:
    source = tree(tmp_path / "source")
    async with World() as world:
        await with_agent(world)
        async with reached(world) as access:
            with pytest.raises(CopyFailed, match="add -r"):
                await copying.send(access, source, str(guest), nothing)
            assert await copying.send(access, source, str(guest), nothing, recursive=True) == str(guest / "source")
            assert await copying.send(access, source, str(guest / "other"), nothing, recursive=True) == str(guest / "other")
            with pytest.raises(CopyFailed, match="add -r"):
                await copying.fetch(access, str(guest / "other"), tmp_path, nothing)
            here, left_out = await copying.fetch(access, str(guest / "other"), tmp_path / "back", nothing, recursive=True)
    assert left_out == []
    for each in (guest / "source", guest / "other", here):
        assert (each / "sub" / "run").stat().st_mode & 0o777 == 0o755 and (each / "empty").is_dir()
        assert (each / "link").readlink() == Path("sub/run")
    assert not parts_in(tmp_path)


@scripted
async def test_an_archive_of_a_guest_stays_in_its_directory(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, link in (
            ("../outside", ""),
            ("/absolute", ""),
            ("out", "../.."),
            ("far", "/etc"),
            ("deep", "."),
            ("deep/x", "../up"),
            ("good", ""),
        ):
            entry = tarfile.TarInfo(name)
            if link:
                entry.type, entry.linkname = tarfile.SYMTYPE, link
            archive.addfile(entry)
    packed.seek(0)
    (tmp_path / "in").mkdir()
    left_out = copying._unpack(packed, tmp_path / "in" / "place")
    assert sorted(path.name for path in (tmp_path / "in" / "place").iterdir()) == ["absolute", "deep", "good"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["place"]
    assert [each.split(":")[0] for each in left_out] == ["../outside", "out", "far", "deep/x"]


@scripted
async def test_what_changes_on_the_way_takes_no_place(tmp_path: Path, guest: Path) -> None:
    (tmp_path / "file").write_bytes(b"right")
    (guest / "old").write_bytes(b"old")
    async with World() as world:
        machine = await with_agent(world)
        right = machine.agent.write_file
        read = machine.agent.read_file

        async def wrong(path: str, offset: int, data: bytes) -> None:
            await right(path, offset, b"wrong")

        async def short(path: str, offset: int, count: int) -> tuple[bytes, bool]:
            return (await read(path, offset, count))[0][:-1], True

        async with reached(world) as access:
            machine.agent.write_file = wrong  # type: ignore[method-assign]
            with pytest.raises(CopyFailed, match="differs from what was sent"):
                await copying.send(access, tmp_path / "file", str(guest / "old"), nothing)
            machine.agent.read_file = short  # type: ignore[method-assign]
            with pytest.raises(CopyFailed, match="differs from what was there"):
                await copying.fetch(access, str(guest / "old"), tmp_path / "back", nothing)
    assert (guest / "old").read_bytes() == b"old" and not (tmp_path / "back").exists() and not parts_in(tmp_path)


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ("none", "/tmp", "no such file"),
        ("file", "relative", "begins with /"),
        ("file", "{guest}/none/", "has no directory"),
        ("file", "{guest}/none/file", "o such file"),
    ],
)
@scripted
async def test_copies_that_cannot_be(source: str, target: str, why: str, tmp_path: Path, guest: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    async with World() as world:
        await with_agent(world)
        async with reached(world) as access:
            with pytest.raises((CopyFailed, GuestRefused), match=why):
                await copying.send(access, tmp_path / source, target.format(guest=guest), nothing)
            with pytest.raises(CopyFailed, match="no such file"):
                await copying.fetch(access, str(guest / "none"), tmp_path, nothing)
            with pytest.raises(CopyFailed, match="no directory"):
                await copying.fetch(access, str(tmp_path / "file"), tmp_path / "none" / "file", nothing)


@scripted
async def test_without_an_agent_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    async with World() as world:
        await world.machine()
        await world.running()
        async with reached(world) as access:
            with pytest.raises(NoAgent, match="install qemu-guest-agent"):
                await copying.send(access, tmp_path / "file", "/tmp/file", nothing)
