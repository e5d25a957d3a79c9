"""The guests that live in a directory while no server runs, and which cluster they belong to.

A server ends every machine that its store has no instance of. So a store may look after a directory only if it is the one that the guests
were started from: `engine/cluster` holds the UID of the namespace kube-system of that store, which a backup keeps.
"""

import re
from collections.abc import Callable, Collection
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.engine.machine.directory import Directory, tame

_MARK = "cluster"
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ForeignGuests(Terminal):
    """Guests run in the directory that the store of this start knows nothing of."""


def running(engine: Path) -> list[Directory]:
    """The machines whose QEMU lives."""
    places = sorted((engine / "machines").glob("*/lock"))
    return [found for place in places if tame(place.parent.name) and (found := Directory(place.parent)).locked()]


def refuse_in_memory(engine: Path) -> None:
    """Raise `ForeignGuests` when guests run in the directory of a server that would begin with nothing."""
    if guests := running(engine):
        raise ForeignGuests(
            f"cannot keep objects in memory in {engine.parent}",
            why=f"{_count(guests)} there, which a server without their objects would end",
            fix="leave --in-memory out, name another directory, or end the guests with `paddock down --purge`",
        )


def claim(engine: Path, cluster: str, knows: Callable[[Collection[str]], bool]) -> None:
    """The guests of the directory belong to this cluster from now on.

    Raises `ForeignGuests` when guests run that belong to another one. A directory of an earlier version does not say whose they are: there,
    `knows` tells whether the store has the instance of any of these machines.
    """
    mark = engine / _MARK
    before, damage = _read(mark)
    if before == cluster:
        return
    guests = running(engine)
    if guests and damage and not knows({each.id for each in guests}):
        raise ForeignGuests(
            f"cannot look after the guests in {engine.parent}",
            why=f"{mark} tells whose they are, and {damage}; the store has none of them",
            fix="put the file back from a backup, or remove it and end the guests with `paddock down --purge`",
        )
    if guests and (before or not knows({each.id for each in guests})):
        raise ForeignGuests(
            f"cannot look after the guests in {engine.parent}",
            why=f"{_count(guests)} there, and the store is not the one that they were started from: it would end them",
            fix="restore that store from a backup (`paddock backup restore`), or end the guests with `paddock down --purge`",
        )
    engine.mkdir(mode=0o711, parents=True, exist_ok=True)
    fresh = mark.with_suffix(".new")
    try:
        fresh.write_text(f"{cluster}\n")
        fresh.replace(mark)
    except OSError as error:
        why = error.strerror or str(error)
        raise ForeignGuests(f"cannot write {mark}", why=why, fix="make room there, or remove what has that name") from error


def _read(mark: Path) -> tuple[str, str]:
    """Return the cluster that a mark names, or what is damaged of it. A mark that is not there is of an earlier version."""
    try:
        said = mark.read_text().strip()
    except FileNotFoundError:
        return "", ""
    except (OSError, UnicodeDecodeError) as error:
        return "", f"cannot be read ({error})"
    return (said, "") if _UID.fullmatch(said) else ("", "holds no UID")


def forget(engine: Path) -> None:
    """The directory belongs to nobody."""
    (engine / _MARK).unlink(missing_ok=True)


def _count(guests: Collection[Directory]) -> str:
    return "a guest runs" if len(guests) == 1 else f"{len(guests)} guests run"
