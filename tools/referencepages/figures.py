"""docs/reference/figures.md: the newest figures of Paddock beside those of its peers, from `tools/bench/results.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddock.schema.generate import reference

_RESULTS = Path(__file__).parents[1] / "bench" / "results.toml"
_ABOUT = f"""# Figures

{reference.HEADER}

Paddock beside the programs that it stands in for, on the same host and under the same loads; *objects* are
10,000 KubeVirt VirtualMachines. `make bench` measures the figures again;
[measurements](../evidence/performance.md) has the loads, the targets, and everything else that was measured.
"""


def runs() -> list[Mapping[str, Any]]:
    """Return the runs, each with its figures."""
    found: list[Mapping[str, Any]] = tomllib.loads(_RESULTS.read_text(encoding="utf-8"))["run"]
    return found


def page() -> str:
    """Return the page."""
    return "\n".join([_ABOUT, *(line for run in runs() for line in _section(run))]).rstrip() + "\n"


def _section(run: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Beside {run['peer']}\n"
    yield f"Host: {run['host']}. Command: `{run['command']}`.\n"
    yield from ("| figure | Paddock | peer |", "| --- | ---: | ---: |")
    for figure in run["figure"]:
        unit = figure["unit"]
        yield f"| {figure['name']} | {figure['paddock']:,} {unit} | {figure['peer']:,} {unit} |"
    yield ""
