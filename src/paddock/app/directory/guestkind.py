"""The kind of guests that a directory was made for: real ones, or simulated ones (docs/reference/on-disk.md).

`guests.json` marks a directory of simulated guests. One without it that has an engine was made for real guests.
"""

from pathlib import Path
from typing import Literal

import msgspec

from paddock.app.directory.paths import DataPaths
from paddock.base.errors import Terminal

NAME = "guests.json"
GuestKind = Literal["real", "simulated"]


class GuestMark(msgspec.Struct, frozen=True):
    """The content of the file."""

    guests: GuestKind


class OtherGuests(Terminal):
    """The directory was made for guests of the other kind."""


def check(root: Path, guests: str) -> None:
    """Raise `OtherGuests` if a server with guests of this kind must not use the directory. Nothing is changed."""
    made_for = kind_of(root)
    if made_for is None or made_for == guests:
        return
    other = "start it with --guests simulated" if made_for == "simulated" else "leave --guests simulated out"
    raise OtherGuests(
        f"cannot use {root} for {guests} guests",
        why=f"it was made for {made_for} guests, and their machines would count as lost (nothing was changed)",
        fix=f"{other}, or name another directory: --dir",
    )


def note(root: Path, guests: str) -> None:
    """Write down that the directory is for simulated guests, if it is. Raises as `check` does."""
    check(root, guests)
    if guests == "simulated":
        fresh = root / f"{NAME}.new"
        fresh.write_bytes(msgspec.json.encode(GuestMark("simulated")) + b"\n")
        fresh.replace(root / NAME)


def kind_of(root: Path) -> GuestKind | None:
    """Return the kind of guests that a directory was made for; None: no server with guests used it."""
    path = root / NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=GuestMark).guests
    except (FileNotFoundError, NotADirectoryError):
        return "real" if DataPaths(root).engine.is_dir() else None
    except (OSError, ValueError) as error:
        fix = "put the file back from a backup, or name another directory: --dir"
        raise OtherGuests(f"cannot read {path}, which says what guests the directory is for", why=str(error), fix=fix) from error
