"""docs/reference/tried.md: hosts, hypervisors and clients with which Paddock was run, each with the tests that run it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from paddock.schema.generate import reference
from tools.referencepages.tables import table

_ROWS = Path(__file__).with_name("tried.toml")
State = Literal["run", "part", "simulated", "no"]
_SAID: dict[State, str] = {"run": "yes", "part": "in part", "simulated": "simulator only", "no": "no"}
_ABOUT = f"""# What was tried

{reference.HEADER}

This page lists what Paddock was run with, and what it was not. *Yes* means that the tests named in the last column run the real thing.
*In part* and *simulator only* are no promise for the rest. What has *no* may work, but no test shows it.

Two facts matter most. No guest with a stock kernel has run under KVM yet: machines without it run under QEMU's emulation. The drivers for
vSphere, Proxmox VE and Firecracker have only met simulators; [Drivers and what they can do](providers.md) has each capability.
"""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing that was run with Paddock, or was not."""

    what: str
    state: State
    note: str = ""
    runs: tuple[str, ...] = ()
    # a file that holds the text `version`
    pins: str = ""
    version: str = ""


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The things of one table."""

    title: str
    row: tuple[Row, ...]


class _Tried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[Group, ...]


def groups() -> Sequence[Group]:
    """Return what was tried and what was not."""
    return msgspec.toml.decode(_ROWS.read_bytes(), type=_Tried).group


def page() -> str:
    """Return the page."""
    return "\n".join([_ABOUT, *(line for each in groups() for line in _section(each))]).rstrip() + "\n"


def _section(group: Group) -> Iterator[str]:
    yield f"## {group.title}\n"
    rows = [(each.what, _SAID[each.state], each.note, ", ".join(f"`{test}`" for test in each.runs)) for each in group.row]
    yield from table(("what", "tried", "how far", "tests"), rows)
