"""The recorder in real pytest runs over a made-up repository, in one process and with workers."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
CONFTEST = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tools.gate.plugin import Settings, SuiteRecorder, TimeLimit

class Clock:
    now = 0
    def __call__(self):
        Clock.now += 1
        return Clock.now

def pytest_addoption(parser):
    for name in ("--limit", "--part"):
        parser.addoption(name, default="")
    parser.addoption("--write", action="store_true")

def pytest_configure(config):
    if limit := config.getoption("--limit"):
        config.pluginmanager.register(TimeLimit(float(limit), Clock()))
    root = Path({{root!r}})
    config.pluginmanager.register(SuiteRecorder(
        Settings(root / "passed.txt", root, config.getoption("--write"), config.getoption("--part"), "make it")
    ))
"""
SUITE = "tests/host/"
TESTS = """
import pytest
import helper
@pytest.mark.parametrize("case", ["a", "b c"])
def test_one(case): assert helper.GOOD
"""
OTHER = """
import pytest
def test_two(): pass
def test_three(): pytest.skip("it lacks something")
@pytest.mark.xfail
def test_four(): assert 0
"""
WHOLE = ["passed 2 test_a.py", "passed 3 test_b.py", "skipped 1 test_b.py::test_three"]


class Play:
    """A repository with a suite of two modules, and runs of it."""

    def __init__(self, pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
        self.root = pytester.path
        self._pytester = pytester
        self._workers = workers
        pytester.makeconftest(CONFTEST.replace("{root!r}", repr(str(self.root))))
        (self.root / SUITE).mkdir(parents=True)
        self._git("init", "-q")
        self.commit(**{"helper.py": "GOOD = True", f"{SUITE}test_a.py": TESTS, f"{SUITE}test_b.py": OTHER})

    def _git(self, *words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=self.root, check=True, capture_output=True)

    def commit(self, **changes: str) -> None:
        """Change files, and commit."""
        for name, text in changes.items():
            (self.root / name).write_text(text)
        self._git("add", "-A", "--", "*.py")
        self._git("commit", "-qm", "x", "--allow-empty")

    def run(self, *options: str) -> pytest.RunResult:
        """One run."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)
            return self._pytester.runpytest_inprocess("-p", "no:cacheprovider", *self._workers, *options)

    def record(self) -> list[str]:
        """Return the record without digest, commit and date."""
        lines = (self.root / "passed.txt").read_text().splitlines()[1:]
        return [" ".join((*line.split(" ", 5)[1:3], line.split(" ", 5)[5].removeprefix(SUITE))) for line in lines]


@pytest.fixture
def play(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Play:
    return Play(pytester, getattr(request, "param", ()))


@pytest.mark.parametrize("play", [(), ("-n", "1")], ids=["one process", "a worker"], indirect=True)
def test_a_run_that_cannot_finish_is_red_unless_the_record_proves_the_rest(play: Play) -> None:
    # Nothing is recorded: nothing to hold the run to.
    nothing = play.run("--limit=0")
    assert nothing.ret == 0 and "no record says whether they pass" in nothing.stdout.str()
    assert play.run("--write").ret == 0
    assert play.record() == WHOLE
    # The same code.
    proven = play.run("--limit=0")
    assert proven.ret == 0 and "5 of them passed on the same code" in proven.stdout.str()
    # A later commit that one of them uses.
    play.commit(**{f"{SUITE}test_a.py": TESTS + "# changed\n"})
    broken = play.run("--limit=0")
    assert broken.ret == 1 and "RED: nothing proves 2 of them on this code; run `make it`" in broken.stdout.str()
    # What the commit touches is what is missing.
    missing = play.run("--part=missing", "--write")
    missing.assert_outcomes(passed=2)
    assert play.run("--part=missing", "--limit=0").ret == 0


def test_a_part_without_tests_is_no_failure(play: Play) -> None:
    assert play.run("--part=covered").ret == 0
    assert play.run("--part=missing", "--write").ret == 0
    assert play.run("--part=missing").ret == 0
    assert play.run("--part=missing", "--write").ret == 0
    assert play.record() == WHOLE


def test_what_is_not_proven_comes_first(play: Play) -> None:
    play.run("--write", f"{SUITE}test_a.py")
    assert play.record() == ["passed 2 test_a.py"]
    # Of five tests there is time for three: those of the second module.
    first = play.run("--limit=3.5")
    assert first.ret == 0 and "2 of them passed on the same code" in first.stdout.str()


def test_a_run_that_was_cut_short_records_what_it_ran(play: Play) -> None:
    play.run("--write", "--limit=3.5")
    assert play.record() == ["passed 2 test_a.py", "passed 1 test_b.py::test_two"]
    assert play.run("--write", "--part=missing").ret == 0
    assert play.record() == WHOLE


def test_a_failure_is_red_and_takes_the_proof_away(play: Play) -> None:
    play.run("--write")
    play.commit(**{"helper.py": "GOOD = False"})
    assert play.run("--write").ret == 1
    assert play.record() == WHOLE
    again = play.run("--limit=0")
    assert again.ret == 1 and "on other code at" in again.stdout.str()


def test_a_named_test_proves_itself_only(play: Play) -> None:
    play.run("--write", f"{SUITE}test_b.py::test_two")
    assert play.record() == ["passed 1 test_b.py::test_two"]
