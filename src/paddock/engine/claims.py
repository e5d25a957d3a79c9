"""Each directory's own block of user and group numbers and its own pod network, for all directories of a host.

One file holds the claims of all directories, and a lock beside it orders the writers. A claim is made once and survives reboots of the
host. It ends when the directory is purged, or when the directory is gone and no process has a number of its block.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from paddock.base import variables
from paddock.base.errors import Terminal
from paddock.engine import versions

_VERSION = 1
_PLACE = "/var/lib/paddock-host"
# Another place for the record, for tests and for hosts where that one cannot be written.
_VARIABLE = variables.HOST_DIRECTORY.name
# Earlier versions gave every directory the numbers from here on. Nobody gets the first block, so that their machines keep theirs until
# their next start.
FIRST = 2_000_000_000
BLOCK = 1 << 18
# The last block ends below 2^31, which some programs take for a sign.
_BLOCKS = (2**31 - FIRST) // BLOCK


class HostReservation(msgspec.Struct, frozen=True):
    """The block and the networks of one directory. `block` 0 and a network "" mean none yet."""

    directory: str
    block: int = 0
    network: str = ""
    network6: str = ""


class _Stored(msgspec.Struct):
    version: int = _VERSION
    claims: list[HostReservation] = []


class ReservationsUnusable(Terminal):
    """The record of claims cannot be read or written, or has no room left."""


class HostReservations:
    """The claims of all directories on this host."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = (path or Path(os.environ.get(_VARIABLE) or _PLACE)) / "claims.json"

    def users(self, directory: Path) -> int:
        """Return the first number of the directory's block."""
        with self._locked() as claims:
            own = _own(claims, directory)
            if not own.block:
                _forget_gone(claims)
                used = {each.block for each in claims.values()} | {(uid - FIRST) // BLOCK for uid in uids()}
                block = next((number for number in range(1, _BLOCKS) if number not in used), 0)
                if not block:
                    fix = "remove directories that nobody needs with `paddock down --purge`"
                    raise ReservationsUnusable(
                        "cannot give machines users of their own", why="all blocks of user numbers are claimed", fix=fix
                    )
                own = msgspec.structs.replace(own, block=block)
                claims[own.directory] = own
            return FIRST + own.block * BLOCK

    def networks(self, directory: Path, choose: Callable[[Collection[str]], tuple[str, str]]) -> tuple[str, str]:
        """Return the directory's pod networks, IPv4 and IPv6, which `choose` picks when it knows those of the other directories."""
        with self._locked() as claims:
            own = _own(claims, directory)
            _forget_gone(claims)
            others = [each for each in claims.values() if each.directory != own.directory]
            network, network6 = choose({used for each in others for used in (each.network, each.network6) if used})
            claims[own.directory] = msgspec.structs.replace(own, network=network, network6=network6)
            return network, network6

    def directories(self) -> list[Path]:
        """Return the directories with a claim."""
        return [Path(each) for each in self._read()]

    def release(self, directory: Path) -> None:
        if self._path.exists():
            with self._locked() as claims:
                claims.pop(_name(directory), None)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[dict[str, HostReservation]]:
        """The claims by directory; changes are written when the block ends without an error."""
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            lock = os.open(self._path.with_name("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            claims = self._read()
            before = dict(claims)
            yield claims
            if claims != before:
                self._write(claims)
        finally:
            os.close(lock)

    def _read(self) -> dict[str, HostReservation]:
        try:
            raw = self._path.read_bytes()
            if why := versions.strange(raw, _VERSION):
                raise self._unusable(why, versions.FIX)
            stored = msgspec.json.decode(raw, type=_Stored)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unusable(str(error)) from error
        return {each.directory: each for each in stored.claims}

    def _write(self, claims: dict[str, HostReservation]) -> None:
        # Servers of several versions share the file: what a newer one added to it stays.
        found = msgspec.json.decode(self._path.read_bytes()) if self._path.exists() else {}
        known = {each["directory"]: each for each in found.get("claims", ())}
        own = [known.get(name, {}) | msgspec.to_builtins(claims[name]) for name in sorted(claims)]
        stored = found | {"version": _VERSION, "claims": own}
        fresh = self._path.with_suffix(".new")
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(stored)) + b"\n")
                file.flush()
                os.fdatasync(file.fileno())
            fresh.replace(self._path)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error

    def _unusable(self, why: str, fix: str = "") -> ReservationsUnusable:
        usual = (
            f"make {self._path.parent} writable for root, or set {_VARIABLE} for all servers; remove a damaged file while no machine runs"
        )
        what = f"cannot use {self._path}, which keeps the servers of this host apart"
        return ReservationsUnusable(what, why=why, fix=fix or usual)


def _name(directory: Path) -> str:
    return str(directory.resolve())


def _own(claims: dict[str, HostReservation], directory: Path) -> HostReservation:
    name = _name(directory)
    return claims.get(name, HostReservation(name))


def _forget_gone(claims: dict[str, HostReservation]) -> None:
    """Drop the claims of directories that are gone. A block stays as long as a process has a number of it."""
    gone = [each for each in claims.values() if not Path(each.directory).is_dir()]
    if gone:
        alive = {(uid - FIRST) // BLOCK for uid in uids()}
        for each in gone:
            if each.block not in alive:
                del claims[each.directory]


def uids() -> set[int]:
    """The users of all processes that have numbers of ours."""
    found = set()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    found.add(entry.stat().st_uid)
    return {uid for uid in found if uid >= FIRST}
