"""docs/evidence/kubevirt-admission.md: where a dry-run here ends otherwise than at KubeVirt's webhooks, and why.

The list is the one that the reference tests hold the requests of KubeVirt's unit tests against (`tests/reference/kubevirt-tables.toml`).
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paddock.kubernetes.schema.generate import reference
from tests.reference.recipes import KUBEVIRT_ADMISSION

TABLE = Path(__file__).parents[2] / "tests" / "reference" / "kubevirt-tables.toml"
_ABOUT = """# Admission beside KubeVirt's webhooks

{header}

`paddock up` accepts, refuses and completes the objects of KubeVirt as KubeVirt's own webhooks do, but for what this page lists. A test
records the {requests} different requests of the unit tests of KubeVirt's webhooks ({version}). It plays them to these webhooks and, as
dry-runs, to Paddock's server. They agree on at least {default:.1%} of the requests with the feature gates that KubeVirt turns on by
itself, and on at least {gates:.1%} with all of them. Every request that they judge differently, and every field that they complete
differently, has a line here.
"""


def page() -> str:
    """Return the page."""
    return render(tomllib.loads(TABLE.read_text()))


def render(table: Mapping[str, Any]) -> str:
    """Return the page of a table."""
    about = _ABOUT.format(
        header=reference.HEADER,
        version=KUBEVIRT_ADMISSION.version,
        requests=f"{sum(table['requests'].values()):,}",
        **table["agreement"],
    )
    verdicts: list[Mapping[str, str]] = table["verdict"]
    here = [each for each in verdicts if each["matches"].startswith("^here ")]
    there = [each for each in verdicts if each not in here]
    lines = [
        about,
        *_section("What KubeVirt accepts and Paddock refuses", here),
        *_section("What KubeVirt refuses and Paddock accepts", there),
        *_section("What is completed differently", table["completion"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, entries: Iterable[Mapping[str, str]]) -> Iterator[str]:
    yield from (f"## {title}", "", "| What | Why |", "| --- | --- |")
    yield from (f"| {each['what']} | {each['why']} |" for each in entries)
    yield ""
