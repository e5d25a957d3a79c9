"""docs/reference/tried.md: hosts, hypervisors and clients with which Paddock was run, each with the tests that run it and their days."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from paddock.kubernetes.schema.generate import reference
from tools.conformance import results
from tools.gate import record
from tools.referencepages.tables import table

_ROOT = Path(__file__).resolve().parents[2]
# What recorded runs of the long suites left: the results of tests of the specifications, and the records of the gate.
_RESULTS = ("tests/host/results.json", "tests/reference/results.json")
_RECORDS = ("tests/host/passed.txt", "tests/reference/passed.txt")
_ROWS = Path(__file__).with_name("tried.toml")
State = Literal["run", "part", "simulated", "no"]
_DAY = re.compile(r" \(\d{4}-\d\d-\d\d\)")
_SAID: dict[State, str] = {"run": "yes", "part": "in part", "simulated": "simulator only", "no": "no"}
_ABOUT = f"""# What was tried

{reference.HEADER}

This page lists what Paddock was run with, and what it was not. *Yes* means that the tests named in the last column run the real thing.
*In part* and *simulator only* are no promise for the rest. What has *no* may work, but no test shows it. The date behind a test is that
of the oldest of its recorded results; a test without one has run, but no record holds when. Tests in `tests/unit` run for
every change.

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


def days(root: Path = _ROOT) -> Mapping[str, str]:
    """Return the day of each test module that recorded runs tell of: of the file that knows later ones, the oldest of its tests."""
    found: dict[str, str] = {}
    for file in (*_RESULTS, *_RECORDS):
        if (root / file).exists():
            for module, day in _oldest(_proofs(root / file)).items():
                found[module] = max(day, found.get(module, ""))
    return found


def _proofs(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each test, or module, of a file with the day on which it passed, or with "" if that is unknown."""
    if file.suffix == ".json":
        yield from ((each.file, each.date if each.outcome == "passed" else "") for each in results.read(file))
    else:
        yield from ((record.module_of(each.node), each.date) for each in record.read(file).proofs)


def _oldest(proofs: Iterator[tuple[str, str]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for module, day in proofs:
        found[module] = min(day, found.get(module, day))
    return {module: day for module, day in found.items() if day}


def without_days(text: str) -> str:
    """Return the page without days: a recorded run need not write the page again, because an older day is still true."""
    return _DAY.sub("", text)


def page(known: Mapping[str, str] | None = None) -> str:
    """Return the page, with the `known` days of test modules or those of the recorded runs."""
    known = days() if known is None else known
    return "\n".join([_ABOUT, *(line for each in groups() for line in _section(each, known))]).rstrip() + "\n"


def _section(group: Group, known: Mapping[str, str]) -> Iterator[str]:
    yield f"## {group.title}\n"
    rows = [(each.what, _SAID[each.state], each.note, ", ".join(_dated(test, known) for test in each.runs)) for each in group.row]
    yield from table(("what", "tried", "how far", "tests"), rows)


def _dated(test: str, known: Mapping[str, str]) -> str:
    return f"`{test}` ({known[test]})" if test in known else f"`{test}`"
