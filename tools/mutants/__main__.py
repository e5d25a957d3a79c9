"""``python -m tools.mutants [TEXT ...]``: tries the mutants whose items begin with one of the texts, or all of them.

It works in a temporary worktree, with the changes that are not committed yet. The tests run without a fault first. Prints a line for
each mutant, and exits with 1 when one of them was not noticed.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.mutants import listing
from tools.mutants.listing import Mutant

ROOT = Path(__file__).resolve().parent.parent.parent
LISTING = Path(__file__).with_name("mutants.toml")
# What pytest exits with.
PASSED, FAILED, NO_TESTS = 0, 1, 5
WORDS = {PASSED: "NOT NOTICED", FAILED: "noticed", NO_TESTS: "NO TEST is marked with it"}
Run = subprocess.CompletedProcess[str]


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # The worktree goes, too, when somebody ends the run.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    named = [each for each in listing.read(options.list) if each.item.startswith(tuple(options.items) or "")]
    mutants = [each for each in named if options.long or each.tests == listing.QUICK_SUITES]
    if not mutants:
        print("mutants: none is listed for that; those that only real guests or a soak show need --long")
        return 1
    unnoticed = 0
    with worktree(ROOT) as tree:
        healthy = run(mutants, tree)
        if healthy.returncode != PASSED:
            print(f"{healthy.stdout}mutants: without a fault, these tests do not pass; nothing was tried")
            return 1
        for mutant in mutants:
            found = tried(mutant, tree)
            word = WORDS.get(found.returncode, f"BROKEN, pytest exits with {found.returncode}")
            if found.returncode == PASSED and " passed" not in found.stdout:
                word = "SKIPPED"
            unnoticed += found.returncode != FAILED
            print(f"{word:12} {mutant.item}: {mutant.fault} ({mutant.file})", flush=True)
            if options.verbose or found.returncode not in WORDS:
                print(found.stdout, flush=True)
    print(f"mutants: {len(mutants)} tried, {unnoticed} not noticed")
    return 1 if unnoticed else 0


def tried(mutant: Mutant, tree: Path) -> Run:
    """Run the tests of one item with its fault in the worktree."""
    original = listing.apply(mutant, tree)
    try:
        return run([mutant], tree)
    finally:
        (tree / mutant.file).write_text(original, encoding="utf-8")


def run(mutants: Sequence[Mutant], tree: Path) -> Run:
    """Run the tests of the mutants' items in the worktree, until one fails."""
    files = sorted({str(file) for each in mutants for file in listing.test_files(each.choice, tree, each.tests)})
    if not files:
        return Run([], NO_TESTS, "")
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    is_long = any(each.tests != listing.QUICK_SUITES for each in mutants)
    # A fault may make a test wait for ever.
    options += ["-m", "soak or not soak"] if is_long else ["-o", "faulthandler_timeout=300"]
    items = [f"--spec-item={item}" for item in sorted({each.item for each in mutants})]
    slow = ["--slow"] if any(file.startswith("tests/host/") for file in files) else []
    command = [sys.executable, "-m", "pytest", *options, *slow, *items, *files]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.run(command, cwd=tree, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


@contextmanager
def worktree(root: Path) -> Iterator[Path]:
    """A checkout of HEAD with the changes that are not committed yet."""

    def git(*arguments: str | Path, folder: Path = root, given: bytes = b"") -> bytes:
        return subprocess.run(["git", *arguments], cwd=folder, input=given, stdout=subprocess.PIPE, check=True).stdout

    with tempfile.TemporaryDirectory(prefix="paddock-mutants-") as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", tree, "HEAD")
        try:
            if changes := git("diff", "--binary", "HEAD"):
                git("apply", folder=tree, given=changes)
            (tree / ".venv").symlink_to(root / ".venv")
            yield tree
        finally:
            git("worktree", "remove", "--force", tree)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("items", nargs="*", metavar="TEXT", help='such as "kube-api 140", or "stakater"')
    parser.add_argument("--list", type=Path, default=LISTING, help="another list of mutants")
    parser.add_argument("--long", action="store_true", help="try those, too, that only real guests or a soak show")
    parser.add_argument("--verbose", action="store_true", help="print what pytest prints")
    return parser


if __name__ == "__main__":
    sys.exit(main())
