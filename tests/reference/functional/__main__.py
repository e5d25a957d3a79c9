"""Runs groups of KubeVirt's functional tests against a `paddock up` of its own: `python -m tests.reference.functional [GROUP...]`.

It prints a line for each spec and adds it to `results.json`. An interrupted group goes on where it ended. The exit code is 1 when a spec
fails that `verdicts.toml` does not explain, or when specs are left.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from paddock.base.errors import PaddockError
from tests.reference.functional import installation, results, suite
from tests.reference.functional.installation import Installation
from tests.reference.functional.suite import Ending, Group, Programs, Spec

# What an unfinished group has behind it.
_UNFINISHED = Path(".cache/test-kubevirt")


@dataclass(frozen=True)
class Choice:
    """Which specs of a group run."""

    # matches somewhere in their names
    pattern: str = ""
    failed_only: bool = False
    # those that have no ending; with `failed_only` both
    new_only: bool = False

    def of(self, specs: Sequence[Spec]) -> list[Spec]:
        """Those of some specs that are chosen."""
        endings = results.read().endings
        failed = {name for name, ending in endings.items() if ending.state in results.FAILED}
        chosen = [spec for spec in specs if re.search(self.pattern, spec.name)]
        if not self.failed_only and not self.new_only:
            return chosen
        return [spec for spec in chosen if (self.failed_only and spec.name in failed) or (self.new_only and spec.name not in endings)]

    @property
    def is_everything(self) -> bool:
        """Return whether it leaves none out."""
        return self == Choice()


def main() -> int:
    """Run the groups that are named, or print which there are."""
    known = suite.groups()
    parser = argparse.ArgumentParser(prog="python -m tests.reference.functional", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join([*known, "all"]))
    parser.add_argument("--only", default="", metavar="REGEX", help="run the specs whose names match")
    parser.add_argument("--failed", action="store_true", help="run the specs that failed last")
    parser.add_argument("--new", action="store_true", help="run the specs that have not run yet")
    arguments = parser.parse_args()
    if unknown := set(arguments.groups) - {*known, "all"}:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    if not arguments.groups:
        print(f"test-kubevirt: say which groups, such as GROUP=access: {', '.join([*known, 'all'])}")
        return 2
    if reason := suite.missing():
        print(f"test-kubevirt: left out: {reason}")
        return 0
    chosen = [known[name] for name in (known if "all" in arguments.groups else arguments.groups)]
    try:
        return _run(chosen, Choice(arguments.only, arguments.failed, arguments.new))
    except PaddockError as problem:
        print(problem, file=sys.stderr)
        return 1


def _run(groups: Sequence[Group], choice: Choice) -> int:
    programs = suite.programs()
    specs = suite.specs(programs.tests)
    with installation.installed() as one:
        return max(_run_group(Run(programs, one, specs, choice), group) for group in groups)


@dataclass(frozen=True)
class Run:
    """What the groups of a run have in common."""

    programs: Programs
    installation: Installation
    specs: Sequence[Spec]
    choice: Choice


def _run_group(run: Run, group: Group) -> int:
    wanted = run.choice.of(suite.taken(run.specs, group))
    folder = _UNFINISHED.absolute() / (group.name if run.choice.is_everything else "chosen")
    ended = _Ended(folder / "ended.jsonl")
    if not run.choice.is_everything:
        ended.forget()
    left = [spec for spec in wanted if spec.name not in ended.endings]
    print(f"{group.name}: {len(left)} of {len(wanted)} specs, the others ended before", flush=True)
    for ending in suite.run(run.programs, run.installation, left, folder, group.limit) if left else ():
        ended.add(ending)
        results.record([ending], run.specs)
        _say(ending)
    red = _judge(list(ended.endings.values()))
    if unreached := [spec for spec in wanted if spec.name not in ended.endings]:
        print(f"{group.name}: {len(unreached)} specs are left; the same command goes on with them ({folder}/output.log)")
        return 1
    ended.forget()
    return int(red)


class _Ended:
    """The endings of a group that is not through, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ()
        self.endings = {ending.name: ending for ending in (Ending(**json.loads(line)) for line in lines)}

    def forget(self) -> None:
        """Begin anew."""
        self.path.unlink(missing_ok=True)
        self.endings = {}

    def add(self, ending: Ending) -> None:
        """Keep an ending, unless the run was cut short in the midst of it."""
        if ending.is_final:
            self.endings[ending.name] = ending
            with self.path.open("a") as file:
                file.write(json.dumps(asdict(ending)) + "\n")


def _say(ending: Ending) -> None:
    print(f"{ending.state:10} {ending.seconds:7.1f} s  {ending.file}: {ending.name}", flush=True)
    if ending.state in results.FAILED:
        print(f"    {ending.where}: {' '.join(ending.message.split())[:300]}", flush=True)


def _judge(endings: Sequence[Ending]) -> bool:
    known = results.verdicts()
    failed = [ending for ending in endings if ending.state in results.FAILED]
    unexplained = [ending for ending in failed if results.verdict_of(ending, known) is None]
    passed = sum(ending.state == "passed" for ending in endings)
    print(f"{passed} passed, {len(failed)} failed, of these {len(unexplained)} without a verdict in {results.VERDICTS.name}")
    for ending in unexplained:
        print(f"no verdict: {ending.name}")
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main())
