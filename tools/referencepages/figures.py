"""The pages of figures, from `tools/bench/results.toml`: those that other pages quote, and all beside their targets."""

import datetime
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from paddock.kubernetes.schema.generate import reference

RESULTS = Path(__file__).parents[1] / "bench" / "results.toml"
_QUOTED = f"""# Figures

{reference.HEADER}

Paddock beside the programs that it stands in for, on the same host and under the same loads; *objects* are
10,000 KubeVirt VirtualMachines. `make bench` measures the figures again;
[measurements](../evidence/performance.md) has the loads, the targets, and everything else that was measured.
"""
_ALL = f"""# Measurements

{reference.HEADER}

The newest figure of everything that is measured, beside its target and its peer. `make bench` measures them again (how:
[CONTRIBUTING](../../CONTRIBUTING.md)). A target with an x or a fraction is one of the ratio to the peer. Ratios and CPU say more than
times: the host is shared with other work, so times differ from run to run by a third.
[Costs and what was tried against them](../design/0028-costs.md) says where the time goes.
"""
# Processors that others may use while something is measured.
MOST_LOAD = 0.2
_TARGET = re.compile(r"(?P<sign>[<>]=) (?:1/(?P<part>[\d.]+)|(?P<number>[\d.]+) ?(?P<unit>\S*))")


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure of Paddock, and that of its peer."""

    name: str
    unit: str
    paddock: float
    peer: float | None = None
    # `<= 5 ms`; of the ratio to the peer: `>= 6x`, `<= 1/15`
    target: str = ""
    # other pages quote it
    quoted: bool = False

    def ratio(self) -> str:
        """Return Paddock's figure as a multiple or part of its peer's."""
        if not self.peer or not self.paddock:
            return ""
        ratio = self.paddock / self.peer
        return f"{ratio:.1f}x" if ratio > 2 else f"{ratio:.2f}x" if ratio > 0.5 else f"1/{1 / ratio:.1f}"

    def verdict(self) -> str:
        """Return `met` or `missed`; empty without a target."""
        if not self.target:
            return ""
        parsed = _TARGET.fullmatch(self.target)
        assert parsed is not None, self.target
        bound = 1 / float(parsed["part"]) if parsed["part"] else float(parsed["number"])
        value = self.paddock
        if parsed["part"] or (parsed["unit"] == "x" and self.unit != "x"):
            assert self.peer, self.name
            value = self.paddock / self.peer
        else:
            assert (parsed["unit"] or "") == self.unit, self.target
        return "met" if (value <= bound if parsed["sign"] == "<=" else value >= bound) else "**missed**"


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The newest run that measured some figures."""

    title: str
    command: str
    measured: datetime.date
    host: str
    text: str
    figure: tuple[Figure, ...]
    peer: str = ""
    # the part of `make bench` that measures all of it
    part: str = ""
    # the digest of the code, and how many processors others used meanwhile; of older runs unknown
    code: str = ""
    load: float | None = None

    @property
    def is_good(self) -> bool:
        """Others did not disturb it."""
        return "other work" not in self.host and (self.load or 0.0) <= MOST_LOAD

    def circumstances(self) -> str:
        """Return where it was measured, and beside what."""
        load = self.load or 0.0
        beside = "" if load <= MOST_LOAD else f"; other work used {load:g} processors"
        return f"{self.host}{beside}{f'; code {self.code}' if self.code else ''}"


class _Results(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run: tuple[Run, ...]


def runs() -> tuple[Run, ...]:
    """Return the runs, each with its figures."""
    return decoded(RESULTS.read_text())


def decoded(text: str) -> tuple[Run, ...]:
    """Return the runs in a text."""
    return msgspec.toml.decode(text, type=_Results).run


def page() -> str:
    """Return the page of the figures that others quote."""
    return "\n".join([_QUOTED, *(line for run in runs() for line in _beside(run))]).rstrip() + "\n"


def measurements() -> str:
    """Return the page of all figures with their targets."""
    return "\n".join([_ALL, *(line for run in runs() for line in _section(run))]).rstrip() + "\n"


def _beside(run: Run) -> Iterator[str]:
    quoted = [figure for figure in run.figure if figure.quoted]
    if quoted:
        yield f"## Beside {run.peer}\n"
        yield f"Host: {run.circumstances()}. Command: `{run.command}`.\n"
        yield from ("| figure | Paddock | peer |", "| --- | ---: | ---: |")
        yield from (f"| {each.name} | {_amount(each.paddock, each.unit)} | {_amount(each.peer, each.unit)} |" for each in quoted)
        yield ""


def _section(run: Run) -> Iterator[str]:
    yield f"## {run.title}\n"
    yield f"{run.text}\n"
    yield f"{run.measured}, {run.circumstances()}; `{run.command}`.\n"
    head = ("figure", "Paddock", run.peer or "peer", "ratio", "target", "")
    rows = [
        (each.name, _amount(each.paddock, each.unit), _amount(each.peer, each.unit), each.ratio(), each.target, each.verdict())
        for each in run.figure
    ]
    # A column without a word is left out.
    used = [at for at in range(len(head)) if any(row[at] for row in rows)]
    yield f"| {' | '.join(head[at] for at in used)} |"
    yield f"| {' | '.join('---:' if 0 < at < 5 else '---' for at in used)} |"
    yield from (f"| {' | '.join(row[at] for at in used)} |" for row in rows)
    yield ""


def _amount(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,g} {unit}".strip() if value < 1000 else f"{value:,.0f} {unit}".strip()
