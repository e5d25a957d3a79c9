"""The program that shares a directory of the host: how it follows a path, and what its filter of system calls refuses."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.engine import share

ALLOW, SUCCEED, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x00050001, 0x80000000
OTHER_ARCHITECTURE = 0x40000003


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@pytest.mark.spec("kubevirt", 134)
def test_a_path_is_followed_without_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "away").symlink_to("/etc")
    handle = share.open_directory(libc(), str(tmp_path.resolve() / "real" / "deep"))
    assert os.path.samestat(os.fstat(handle), (tmp_path / "real" / "deep").stat())
    os.close(handle)
    for name in ("link", "link/deep", "away", "away/ssh", "file", "none"):
        with pytest.raises(OSError, match="without following links"):
            share.open_directory(libc(), str(tmp_path.resolve() / name))


def test_nobody_else_owns_the_way(tmp_path: Path) -> None:
    deep = tmp_path.resolve() / "a" / "b"
    deep.mkdir(parents=True)
    share.check_way(str(deep), os.geteuid())
    if os.geteuid() == 0:
        os.chown(deep.parent, 12345, 12345)
        share.check_way(str(deep), 12345)
    with pytest.raises(OSError, match="could put another directory in its place"):
        share.check_way(str(deep), os.geteuid() + 54321)


def judged(machine: str, number: int, arguments: tuple[int, ...] = (), architecture: int = 0) -> int:
    """Return the filter's answer to a call, as the kernel runs it."""
    words = {0: number, 4: architecture or share._CALLS[machine][0]} | {16 + 8 * index: each for index, each in enumerate(arguments)}
    program, place, held = share.instructions(machine), 0, 0
    while True:
        code, if_true, if_false, value = program[place]
        if code == share._RETURN:
            return value
        if code == share._LOAD:
            held = words.get(value, 0)
        else:
            is_true = held == value if code == share._JUMP_EQUAL else bool(held & value)
            place += if_true if is_true else if_false
        place += 1


@pytest.mark.spec("kubevirt", 133)
@pytest.mark.parametrize(
    ("machine", "number", "arguments", "answer"),
    [
        # setresuid, setresgid and setgroups succeed and change nothing
        ("x86_64", 117, (1000,), SUCCEED),
        ("x86_64", 119, (1000,), SUCCEED),
        ("x86_64", 116, (), SUCCEED),
        ("aarch64", 147, (), SUCCEED),
        # openat, mkdirat, fchmodat, fchmod with and without set-ID bits
        ("x86_64", 257, (3, 0, 0o101, 0o644), ALLOW),
        ("x86_64", 257, (3, 0, 0o101, 0o4755), REFUSE),
        ("x86_64", 258, (3, 0, 0o755), ALLOW),
        ("x86_64", 258, (3, 0, 0o2755), REFUSE),
        ("x86_64", 268, (3, 0, 0o6755), REFUSE),
        ("x86_64", 268, (3, 0, 0o1777), ALLOW),
        ("x86_64", 91, (3, 0o4755), REFUSE),
        ("x86_64", 91, (0o4755, 0o755), ALLOW),
        ("x86_64", 452, (3, 0, 0o2755), REFUSE),
        ("aarch64", 53, (3, 0, 0o4755), REFUSE),
        ("aarch64", 56, (3, 0, 0o101, 0o644), ALLOW),
        # read
        ("x86_64", 0, (3, 0o4000, 0o4000, 0o4000), ALLOW),
    ],
)
def test_the_filter_of_calls(machine: str, number: int, arguments: tuple[int, ...], answer: int) -> None:
    assert judged(machine, number, arguments) == answer


# In a process of its own, which has mounts of its own.
_WRITING = """
import ctypes, os, sys
from paddock.engine import share
libc = ctypes.CDLL(None, use_errno=True)
share._own_mounts(libc)
handle = share.open_directory(libc, sys.argv[1])
share._mount_here(libc, handle, readonly=sys.argv[2] == "readonly")
print(open(f"{share.PLACE}/there").read())
open(f"{share.PLACE}/new", "w").close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts without a user namespace")
@pytest.mark.spec("kubevirt", 133)
@pytest.mark.parametrize("readonly", [False, True])
def test_a_directory_is_written_unless_it_may_only_be_read(tmp_path: Path, *, readonly: bool) -> None:
    (tmp_path / "there").write_text("old")
    words = [str(tmp_path.resolve()), "readonly" if readonly else "writable"]
    ended = subprocess.run([sys.executable, "-c", _WRITING, *words], capture_output=True, text=True, check=False)
    assert ended.stdout == "old\n", ended.stderr
    assert ("Read-only file system" in ended.stderr, (tmp_path / "new").exists()) == (readonly, not readonly)


def test_calls_of_another_architecture_end_the_program() -> None:
    assert judged("x86_64", 0, (), OTHER_ARCHITECTURE) == KILL
