"""Copies files between this host and a guest, by the guest's agent: in parts of a bounded size, compared by their SHA-256 at the end.

A file arrives under a name of its own beside its place, and takes its place when it is whole and right. A directory travels as a tar
archive. Nothing that a guest sends is trusted: an archive is unpacked inside the directory that the user named, and nowhere else.
"""

import hashlib
import os
import secrets
import stat
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from paddock.base.errors import Terminal
from paddock.fleet.guests.guest import CommandOutcome, GuestAccess, GuestRefused

PART = 512 << 10
# done, total
Show = Callable[[int, int], None]
_SHELL = "/bin/sh"
_PROBE = """
if [ -d "$1" ]; then echo d
elif [ -f "$1" ]; then echo f; stat -L -c "%a %s" -- "$1"; sha256sum < "$1"
elif [ -e "$1" ]; then echo o
else echo n; fi"""
# $1: the part; $2: mode; $3: place; $4: sum. A new file belongs to the owner of its directory, as one that the owner copied would.
_PLACE = """
sum=$(sha256sum < "$1") || exit 1
if [ "${sum%% *}" != "$4" ]; then rm -f -- "$1"; exit 9; fi
to=$3; if [ -L "$to" ]; then to=$(readlink -f -- "$to"); fi
like=$to; [ -e "$to" ] || like=${to%/*}/
owner=$(stat -L -c %u:%g -- "$like") && chown "$owner" "$1"
chmod "$2" "$1" && mv -f -- "$1" "$to" """
# $1: the archive; $2: sum; $3: the directory
_UNPACK = """
sum=$(sha256sum < "$1") || exit 1
if [ "${sum%% *}" != "$2" ]; then rm -f -- "$1"; exit 9; fi
owner=$(stat -L -c %u:%g -- "${3%/*}/")
if [ -d "$3" ]; then new=; else mkdir -- "$3" || exit 1; new=1; fi
tar -xof "$1" -C "$3"; code=$?
rm -f -- "$1"
[ -z "$new" ] || chown -R "$owner" "$3"
exit $code"""
_PACK = """
to=$(mktemp /var/tmp/paddock-XXXXXX 2>/dev/null || mktemp /tmp/paddock-XXXXXX) || exit 1
tar -cf "$to" -C "$1" . || { rm -f -- "$to"; exit 1; }
echo "$to"; stat -c "%a %s" -- "$to"; sha256sum < "$to" """
_DIFFERENT = 9


class CopyFailed(Terminal):
    """A copy could not be made; nothing was replaced."""


class GuestEntry(msgspec.Struct, frozen=True):
    """A file of a guest. `kind`: `d`irectory, `f`ile, `o`ther, `n`one."""

    kind: str
    mode: int = 0
    size: int = 0
    sum: str = ""


async def probe(guest: GuestAccess, path: str) -> GuestEntry:
    """Look at a path of a guest."""
    lines = (await _shell(guest, _PROBE, path)).out.decode("utf-8", "replace").splitlines()
    if lines[:1] == ["f"] and len(lines) == 3:
        return GuestEntry("f", *_described(guest, lines[1:]))
    return GuestEntry(lines[0] if lines and lines[0] in ("d", "o", "n") else "n")


def _described(guest: GuestAccess, lines: list[str]) -> tuple[int, int, str]:
    try:
        mode, size = lines[0].split()
        return int(mode, 8) & 0o777, int(size), lines[1].split()[0]
    except (ValueError, IndexError):
        raise CopyFailed(f"cannot understand what {guest.name} says of its file", why=f"it said {lines!r}"[:200]) from None


# --- to a guest -------------------------------------------------------------------------------------------------------------


async def send(guest: GuestAccess, source: Path, target: str, show: Show, *, recursive: bool = False) -> str:
    """Copy a file, or with `recursive` a directory, to a guest; return where it is there."""
    if not source.exists():
        raise CopyFailed(f"cannot copy {source}", why="there is no such file")
    _absolute(target)
    found = await probe(guest, target)
    place = f"{target.rstrip('/')}/{_name_of(source)}" if found.kind == "d" else target
    if target.endswith("/") and found.kind != "d" and not source.is_dir():
        raise CopyFailed(f"cannot copy {source}", why=f"{guest.name} has no directory {target}")
    if source.is_dir():
        if not recursive:
            raise CopyFailed(f"cannot copy {source}", why="it is a directory", fix="add -r")
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                archive.add(source, arcname=".")
            await _send_archive(guest, packed, place.rstrip("/"), show)
        return place.rstrip("/")
    if not source.is_file():
        raise CopyFailed(f"cannot copy {source}", why="it is neither a file nor a directory")
    with source.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777
        part = _beside(place)
        digest = await _upload(guest, file, part, show)
        outcome = await _shell(guest, _PLACE, part, f"{mode:o}", place, digest, check=False)
    await _check(guest, outcome, part, place)
    return place


async def _send_archive(guest: GuestAccess, packed: IO[bytes], place: str, show: Show) -> None:
    packed.seek(0)
    part = _beside(place)
    digest = await _upload(guest, packed, part, show)
    outcome = await _shell(guest, _UNPACK, part, digest, place, check=False)
    await _check(guest, outcome, part, place)


async def _check(guest: GuestAccess, outcome: CommandOutcome, part: str, place: str) -> None:
    if outcome.code == _DIFFERENT:
        raise CopyFailed(f"cannot copy to {place} of {guest.name}", why="what arrived differs from what was sent", fix="try again")
    if outcome.code:
        await guest.run(["rm", "-f", "--", part])
        raise CopyFailed(f"cannot copy to {place} of {guest.name}", why=_words(outcome))


async def _upload(guest: GuestAccess, file: IO[bytes], part: str, show: Show) -> str:
    total, done, digest = os.fstat(file.fileno()).st_size, 0, hashlib.sha256()
    try:
        show(0, total)
        while (data := file.read(PART)) or not done:
            await guest.write(part, done, data)
            digest.update(data)
            done += len(data)
            show(done, max(total, done))
            if not data:
                break
    except BaseException:
        await _forget(guest, part)
        raise
    return digest.hexdigest()


# --- from a guest -----------------------------------------------------------------------------------------------------------


async def fetch(guest: GuestAccess, source: str, target: Path, show: Show, *, recursive: bool = False) -> tuple[Path, list[str]]:
    """Copy a file, or with `recursive` a directory, from a guest; return where it is here, and what was left out with the reasons."""
    _absolute(source)
    found = await probe(guest, source)
    place = target / (source.rstrip("/").rpartition("/")[2] or guest.name) if target.is_dir() else target
    if not place.parent.is_dir():
        raise CopyFailed(f"cannot copy to {place}", why=f"there is no directory {place.parent}")
    if found.kind == "f":
        await _fetch_file(guest, source, found, place, show)
        return place, []
    if found.kind != "d":
        why = "there is no such file" if found.kind == "n" else "it is neither a file nor a directory"
        raise CopyFailed(f"cannot copy {source} of {guest.name}", why=why)
    if not recursive:
        raise CopyFailed(f"cannot copy {source} of {guest.name}", why="it is a directory", fix="add -r")
    packed = (await _shell(guest, _PACK, source)).out.decode("utf-8", "replace").splitlines()
    if len(packed) != 3 or not packed[0].startswith(("/var/tmp/paddock-", "/tmp/paddock-")):
        raise CopyFailed(f"cannot copy {source} of {guest.name}", why="the guest made no archive of it")
    try:
        with tempfile.TemporaryFile() as file:
            await _download(guest, packed[0], GuestEntry("f", *_described(guest, packed[1:])), file, show)
            file.seek(0)
            return place, _unpack(file, place)
    finally:
        await _forget(guest, packed[0])


async def _fetch_file(guest: GuestAccess, source: str, guest_entry: GuestEntry, path: Path, show: Show) -> None:
    handle, name = tempfile.mkstemp(prefix=".paddock-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            await _download(guest, source, guest_entry, file, show)
            # The owner can always read what was copied.
            os.fchmod(file.fileno(), guest_entry.mode | stat.S_IRUSR)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


async def _download(guest: GuestAccess, source: str, guest_entry: GuestEntry, file: IO[bytes], show: Show) -> None:
    done, digest = 0, hashlib.sha256()
    show(0, guest_entry.size)
    while done < guest_entry.size:
        data, is_end = await guest.read(source, done, min(PART, guest_entry.size - done))
        file.write(data)
        digest.update(data)
        done += len(data)
        show(done, guest_entry.size)
        if is_end or not data:
            break
    if digest.hexdigest() != guest_entry.sum:
        why = "what arrived differs from what was there when the copy began"
        raise CopyFailed(f"cannot copy {source} of {guest.name}", why=why, fix="try again when nothing writes to it")


def _unpack(file: IO[bytes], path: Path) -> list[str]:
    """Unpack an archive of a guest below a directory; return what was left out."""
    left_out: list[str] = []
    path.mkdir(exist_ok=True)
    # Python before 3.11.4 has no filters, as Debian 12 has it; the checks here are those of `data` there.
    trusted: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            if why := _danger(member, os.path.realpath(path)):
                left_out.append(f"{member.name}: {why}")
                continue
            member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
            member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0o600)
            archive.extract(member, path, **trusted)
    return left_out


def _danger(member: tarfile.TarInfo, root: str) -> str:
    """Return why a member is not unpacked; empty if it stays inside the root. Links that are there already count."""
    if not (member.isreg() or member.isdir() or member.issym()):
        return "it is neither a file, a directory nor a symbolic link"
    member.name = member.name.lstrip("/") or "."
    own = os.path.realpath(os.path.join(root, os.path.dirname(member.name)))
    inside = [os.path.join(own, os.path.basename(member.name))]
    if member.issym():
        if os.path.isabs(member.linkname):
            return "it is a link to an absolute path"
        inside.append(os.path.join(own, member.linkname))
    elif not member.isdir() or os.path.islink(inside[0]):
        inside[0] = os.path.realpath(inside[0])
    if any(os.path.commonpath([root, os.path.realpath(each)]) != root for each in (own, *inside)):
        return "it leads out of the directory"
    return ""


# --- common -----------------------------------------------------------------------------------------------------------------


def _absolute(path: str) -> None:
    if not path.startswith("/"):
        raise CopyFailed(f'cannot use "{path}" in a guest', why="the agent knows no home directory", fix="give a path that begins with /")


def _name_of(source: Path) -> str:
    return source.resolve().name if source.name in ("", "..") else source.name


def _beside(place: str) -> str:
    folder, _, name = place.rpartition("/")
    return f"{folder}/.{name[:100]}.paddock-{secrets.token_hex(6)}"


async def _forget(guest: GuestAccess, part: str) -> None:
    try:
        await guest.run(["rm", "-f", "--", part], seconds=10)
    except Terminal:
        return


async def _shell(guest: GuestAccess, script: str, *words: str, check: bool = True) -> CommandOutcome:
    try:
        outcome = await guest.run([_SHELL, "-c", script, "paddock", *words])
    except GuestRefused as error:
        fix = f"share a directory with it, or use `paddock ssh {guest.name}`"
        raise CopyFailed(
            f"cannot copy files of {guest.name}", why=f"cp needs a shell and its tools in the guest: {error.why}", fix=fix
        ) from error
    if outcome is None or (check and outcome.code):
        raise CopyFailed(f"cannot copy files of {guest.name}", why=_words(outcome) if outcome else "its shell does not end")
    return outcome


def _words(outcome: CommandOutcome) -> str:
    text = outcome.err.decode("utf-8", "replace").strip().splitlines()
    return "".join(one if one.isprintable() else "?" for one in text[-1][:300]) if text else f"the guest answered {outcome.code}"
