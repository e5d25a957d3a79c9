"""The files that say which of two hosts may run a guest that goes from one to the other while it runs.

    source: handed.json        target: arrival.json       who may run the guest
    none                       none, waiting, dropped     the source
    offered                    waiting                    nobody: the target decides, once, when it is asked
    offered, decided           taken                      the target, for ever
    offered                    dropped                    nobody: the source takes it back, and then has no file

When the directory of a machine goes, `DecidedMigrations` keeps what its files said: the other host may still ask.

Each file is synchronised before anything depends on it, so the same holds after a kill and after a power cut, on either side.
"""

import hashlib
from pathlib import Path
from typing import Literal

from msgspec import Struct

from paddock.engine.machine.directory import ARRIVAL, Directory, SavedMachine, UnreadableState

_HANDED = "handed.json"
_VERSION = 1


class HandedGuest(Struct, frozen=True):
    """A guest that another host may run. `decided`: it does, and never comes back."""

    migration: str
    decided: bool = False
    version: int = _VERSION


class ReceivedGuest(Struct, frozen=True):
    """A guest that comes from another host: it runs here once it is `taken`, and never once it is `dropped`."""

    migration: str
    guest: SavedMachine
    state: Literal["waiting", "taken", "dropped"] = "waiting"
    version: int = _VERSION


def arrival_of(directory: Directory) -> Path:
    """Return the file about a guest that comes here. A start from it waits for that guest."""
    return directory.path / ARRIVAL


def write_arrival(directory: Directory, arrival: ReceivedGuest) -> None:
    """Say who runs the guest."""
    directory.keep(ARRIVAL, arrival)


def read_arrival(directory: Directory) -> ReceivedGuest | None:
    """None: no guest was ever expected here. Raises `UnreadableState`."""
    return directory.read_kept(ARRIVAL, ReceivedGuest, "the arrival of the guest", "restore it from a backup")


def write_handed(directory: Directory, handed: HandedGuest) -> None:
    """After it returned, nobody here runs the guest."""
    directory.keep(_HANDED, handed)


def read_handed(directory: Directory) -> HandedGuest | None:
    """None: the guest was not handed over. Raises `UnreadableState`."""
    return directory.read_kept(_HANDED, HandedGuest, "the hand-over of the guest", "ask the other host whether the guest runs there")


def drop_handed(directory: Directory) -> None:
    """After it returned, the guest may run here again."""
    directory.drop_kept(_HANDED)


def handed_of(directory: Directory) -> Literal["", "offered", "decided"]:
    """Return whether the guest was handed over to another host. If nobody can tell, it stays where it is until somebody knows."""
    try:
        handed = read_handed(directory)
    except UnreadableState:
        return "offered"
    return "" if handed is None else "decided" if handed.decided else "offered"


class DecidedMigration(Struct, frozen=True):
    """The end of a migration whose machine is gone."""

    migration: str
    state: Literal["sent", "taken", "dropped"]
    version: int = _VERSION


class DecidedMigrations:
    """The ends of migrations of one host, by their side and ID. A file of some hundred bytes for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, side: Literal["source", "target"], migration: str, state: Literal["sent", "taken", "dropped"]) -> None:
        """After it returned, a power cut takes nothing away of it."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        Directory(self._folder).keep(_name(side, migration), DecidedMigration(migration, state))

    def state(self, side: Literal["source", "target"], migration: str) -> Literal["", "sent", "taken", "dropped"]:
        """Return the end of a migration; "": none is known. Raises `UnreadableState`."""
        fix = "ask the other host whether the guest runs there"
        try:
            found = Directory(self._folder).read_kept(_name(side, migration), DecidedMigration, "the end", fix)
        except UnreadableState as error:
            raise UnreadableState(f"cannot read the end of migration {migration}", why=error.why, fix=error.fix) from error
        return found.state if found is not None else ""


def _name(side: str, migration: str) -> str:
    """The IDs are words of users."""
    return f"{side}-{hashlib.sha256(migration.encode()).hexdigest()}.json"
