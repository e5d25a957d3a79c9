"""The results of KubeVirt's functional tests: how each spec ended, and for one that failed, the verdict that says why.

`results.json` holds the newest ending of every spec that ran. `verdicts.toml` explains failures by patterns; a failure that no verdict
explains makes a run red, and so does a verdict that explains nothing.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reference.functional import suite
from tests.reference.functional.suite import Ending, Spec

HERE = Path(__file__).parent
RESULTS, VERDICTS = HERE / "results.json", HERE / "verdicts.toml"
CAUSES = {
    "differs": "Paddock behaves differently",
    "nature": "asks for Pods, nodes or an installation that Paddock does not have",
    "environment": "stumbles over the guest, the harness or the host of this run",
}
FAILED = ("failed", "panicked")


@dataclass(frozen=True)
class Verdict:
    """The reason of some failures. Each of the three texts that is not empty stands in what it is compared with."""

    cause: str
    why: str
    spec: str = ""
    where: str = ""
    message: str = ""

    def explains(self, ending: Ending) -> bool:
        """Return whether this is the reason of a failure."""
        return self.spec in ending.name and self.where in ending.where and self.message in ending.message


def verdicts() -> tuple[Verdict, ...]:
    """The known reasons, in the order in which they are tried."""
    return tuple(Verdict(**entry) for entry in tomllib.loads(VERDICTS.read_text())["verdict"])


def verdict_of(ending: Ending, known: Sequence[Verdict]) -> Verdict | None:
    """The first reason that explains a failure."""
    return next((verdict for verdict in known if verdict.explains(ending)), None)


@dataclass(frozen=True)
class Results:
    """The endings by the name of the spec, and how many specs do not run: by what they need, and by their file where no group takes it."""

    total: int
    left_out: Mapping[str, int]
    elsewhere: Mapping[str, int]
    endings: Mapping[str, Ending]


def read(path: Path = RESULTS) -> Results:
    """The recorded results."""
    if not path.exists():
        return Results(0, {}, {}, {})
    known = json.loads(path.read_text())
    endings = (Ending(**entry) for entry in known["specs"])
    return Results(known["total"], known["left-out"], known["elsewhere"], {ending.name: ending for ending in endings})


def record(ended: Iterable[Ending], specs: Sequence[Spec], path: Path = RESULTS) -> None:
    """Write down what ended; what a run did not reach keeps its earlier ending, and what the suite no longer has goes."""
    names = {spec.name for spec in specs}
    endings = {name: ending for name, ending in read(path).endings.items() if name in names}
    endings |= {ending.name: ending for ending in ended if ending.is_final}
    left_out, elsewhere = _not_run(specs)
    entries = sorted(endings.values(), key=lambda ending: (ending.file, ending.name))
    lines = ",\n".join(f"  {json.dumps(_entry(ending), ensure_ascii=False)}" for ending in entries)
    head = {"total": len(specs), "left-out": left_out, "elsewhere": elsewhere}
    path.write_text(f'{json.dumps(head)[:-1]}, "specs": [\n{lines}\n]}}\n')


def _not_run(specs: Sequence[Spec]) -> tuple[dict[str, int], dict[str, int]]:
    reasons, groups = suite.left_out(), suite.groups().values()
    left_out: dict[str, int] = {}
    elsewhere: dict[str, int] = {}
    for spec in specs:
        group = next((each for each in groups if each.takes(spec)), None)
        if group is None:
            elsewhere[spec.file] = elsewhere.get(spec.file, 0) + 1
        elif labels := suite.without(spec, group):
            left_out[reasons[labels[0]]] = left_out.get(reasons[labels[0]], 0) + 1
    return dict(sorted(left_out.items())), dict(sorted(elsewhere.items()))


def _entry(ending: Ending) -> dict[str, Any]:
    """The members that say something."""
    return {name: value for name, value in vars(ending).items() if value != ""}


def faults(results: Results, known: Sequence[Verdict]) -> list[str]:
    """The failures without a reason, and the reasons without a failure."""
    failed = [ending for ending in results.endings.values() if ending.state in FAILED]
    used = {verdict_of(ending, known) for ending in failed}
    unexplained = [f"no verdict: {ending.name}\n    {ending.where}: {ending.message}" for ending in failed if not verdict_of(ending, known)]
    unused = [f"a verdict explains no failure: {verdict.why}" for verdict in known if verdict not in used]
    return unexplained + unused
