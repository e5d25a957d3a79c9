"""Runs groups of KubeVirt's functional tests against a `paddock up` of its own: `python -m tests.reference.functional [GROUP...]`.

It prints a line for each spec and writes `results.json`. An interrupted group goes on where it ended. The exit code is 1 when a spec
fails that `verdicts.toml` does not explain, or when specs are left.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from paddock.base.errors import PaddockError
from tests.host.machine import lacks
from tests.reference import recipes
from tests.reference.build import built
from tests.reference.functional import installation, results, suite
from tests.reference.functional.suite import Ending, Group, Spec

# What an unfinished group has behind it.
_UNFINISHED = Path(".cache/test-kubevirt")


def main() -> int:
    """Run the groups that are named, or print which there are."""
    known = suite.groups()
    parser = argparse.ArgumentParser(prog="python -m tests.reference.functional", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join([*known, "all"]))
    wanted = parser.parse_args().groups
    if unknown := set(wanted) - {*known, "all"}:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    if not wanted:
        print(f"test-kubevirt: say which groups, such as GROUP=access: {', '.join([*known, 'all'])}")
        return 2
    if reason := lacks("qemu"):
        print(f"test-kubevirt: left out: {reason}")
        return 0
    try:
        return _run([known[name] for name in (known if "all" in wanted else wanted)])
    except PaddockError as problem:
        print(problem, file=sys.stderr)
        return 1


def _run(groups: Sequence[Group]) -> int:
    program = built(recipes.FUNCTIONAL) / "functional"
    specs = suite.specs(program)
    # The claims of this run's server are no business of the host's own.
    with tempfile.TemporaryDirectory(prefix="pdft-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["PADDOCK_HOST_DIR"] = str(Path(folder, "claims"))
        (root := Path(folder, "installation")).mkdir()
        Path(folder).chmod(0o711)
        with installation.running(root) as one:
            codes = [_run_group(program, one, group, specs) for group in groups]
    return max(codes)


def _run_group(program: Path, one: installation.Installation, group: Group, specs: Sequence[Spec]) -> int:
    wanted = suite.taken(specs, group)
    folder = _UNFINISHED.absolute() / group.name
    ended = _Ended(folder / "ended.jsonl")
    left = [spec for spec in wanted if spec.name not in ended.endings]
    print(f"{group.name}: {len(left)} of {len(wanted)} specs, the others ended before", flush=True)
    try:
        for ending in suite.run(program, one, left, folder, group.limit) if left else ():
            ended.add(ending)
            _say(ending)
    finally:
        results.record(ended.endings.values(), specs)
    red = _judge(list(ended.endings.values()))
    if unreached := [spec for spec in wanted if spec.name not in ended.endings]:
        print(f"{group.name}: {len(unreached)} specs are left; the same command goes on with them ({folder}/output.log)")
        return 1
    ended.path.unlink(missing_ok=True)
    return int(red)


class _Ended:
    """The endings of a group that is not through, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else ()
        self.endings = {ending.name: ending for ending in (Ending(**json.loads(line)) for line in lines)}

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
