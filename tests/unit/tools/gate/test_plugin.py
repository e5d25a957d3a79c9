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
from tools.gate.verdict import Policy

class Clock:
    now = 0
    def __call__(self):
        Clock.now += 1
        return Clock.now

def pytest_addoption(parser):
    for name in ("--limit", "--part"):
        parser.addoption(name, default="")
    for name in ("--write", "--lenient"):
        parser.addoption(name, action="store_true")

def pytest_configure(config):
    if limit := config.getoption("--limit"):
        config.pluginmanager.register(TimeLimit(float(limit), Clock()))
    root = Path({{root!r}})
    config.pluginmanager.register(SuiteRecorder(
        Settings(root / "passed.txt", root, config.getoption("--write"), config.getoption("--part"), "make it",
                 Policy(not config.getoption("--lenient"), 30, {{"kvm": "none here"}}))
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
def test_three(): pytest.skip("needs kvm: there is none")
@pytest.mark.xfail
def test_four(): assert 0
"""
REST = ["1 test_b.py::test_four", "1 test_b.py::test_two"]
WHOLE = ["2 test_a.py", *REST]


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
        lines = [line.split(" ", 4) for line in (self.root / "passed.txt").read_text().splitlines()[1:]]
        return [f"{count} {node.removeprefix(SUITE)}" for _, count, _, _, node in lines]


@pytest.fixture
def play(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> Play:
    return Play(pytester, getattr(request, "param", ()))


@pytest.mark.parametrize("play", [(), ("-n", "1")], ids=["one process", "a worker"], indirect=True)
def test_a_run_that_cannot_finish_is_red_unless_the_record_proves_the_rest(play: Play) -> None:
    # Nothing is recorded, so nothing proves what was cut.
    cut = play.run("--limit=0")
    assert cut.ret == 1 and "RED: nothing proves 5 tests on this code; run `make it`" in cut.stdout.str()
    assert "test_two (no time: the run was given 0 s; never recorded)" in cut.stdout.str()
    assert play.run("--limit=0", "--lenient").ret == 0
    assert play.run("--write").ret == 0
    assert play.record() == WHOLE
    # The same code. What is skipped for a lack that is known runs nowhere, and here there is no time to learn of the lack.
    proven = play.run("--limit=0")
    assert "gate: 0 ran, 4 proven by the record, 0 slow and proven on other code, 0 absent, 1 unproven" in proven.stdout.str()
    # A later commit that one of them uses.
    play.commit(**{f"{SUITE}test_a.py": TESTS + "# changed\n"})
    broken = play.run("--limit=0", f"{SUITE}test_a.py")
    assert broken.ret == 1 and "RED: nothing proves 2 tests on this code; run `make it`" in broken.stdout.str()
    # What the commit touches is what is missing, beside what is skipped.
    missing = play.run("--part=missing", "--write")
    missing.assert_outcomes(passed=2, skipped=1)
    assert play.run("--part=missing", "--limit=0", f"{SUITE}test_a.py").ret == 0


def test_what_the_machine_is_known_to_lack_is_counted_and_other_skips_are_red(play: Play) -> None:
    known = play.run()
    assert known.ret == 0 and "gate: 4 ran, 0 proven by the record, 0 slow and proven on other code, 1 absent, 0" in known.stdout.str()
    play.commit(**{f"{SUITE}test_b.py": OTHER.replace("needs kvm", "needs luck")})
    other = play.run()
    assert other.ret == 1 and "test_three (needs luck: there is none; never recorded)" in other.stdout.str()
    play.commit(**{f"{SUITE}test_b.py": "import pytest\npytest.importorskip('nowhere', reason='needs luck: there is none')\n"})
    assert play.run().ret == 1


def test_a_part_without_tests_is_no_failure(play: Play) -> None:
    assert play.run("--part=covered").ret == 0
    for _ in range(3):
        assert play.run("--part=missing", "--write").ret == 0
    assert play.record() == WHOLE


def test_what_is_not_proven_comes_first(play: Play) -> None:
    play.run("--write", f"{SUITE}test_a.py")
    assert play.record() == ["2 test_a.py"]
    # Of five tests there is time for three: those of the second module.
    first = play.run("--limit=3.5")
    assert first.ret == 0 and "gate: 2 ran, 2 proven by the record, 0 slow and proven on other code, 1 absent" in first.stdout.str()


def test_each_commit_begins_with_others_of_what_the_record_proves(play: Play) -> None:
    play.run("--write")
    orders = set()
    for _ in range(12):
        play.commit()
        lines = play.run("--part=covered", "--lenient", "-v").outlines
        orders.add("".join(line.partition("test_")[2][0] for line in lines if line.startswith(f"{SUITE}test_") and "PASSED" in line))
    assert orders == {"aab", "baa"}


def test_a_run_that_was_cut_short_records_what_it_ran(play: Play) -> None:
    assert play.run("--write", "--limit=3.5").ret == 1
    assert play.record() == ["2 test_a.py", "1 test_b.py::test_two"]
    assert play.run("--write", "--part=missing").ret == 0
    assert play.record() == WHOLE


def test_a_failure_is_red_and_takes_the_proof_away(play: Play) -> None:
    play.run("--write")
    play.commit(**{"helper.py": "GOOD = False"})
    assert play.run("--write").ret == 1
    assert play.record() == REST
    again = play.run("--limit=0")
    assert again.ret == 1 and "never recorded" in again.stdout.str()


def test_a_named_test_proves_itself_only(play: Play) -> None:
    play.run("--write", f"{SUITE}test_b.py::test_two")
    assert play.record() == ["1 test_b.py::test_two"]


def test_a_run_of_one_mark_keeps_what_the_record_says_of_the_rest(play: Play) -> None:
    play.commit(**{f"{SUITE}test_a.py": TESTS + "@pytest.mark.xdist_group('one')\ndef test_marked(): pass\n"})
    assert play.run("--write").ret == 0 and play.record()[0] == "3 test_a.py"
    assert play.run("--write", "-m", "xdist_group").ret == 0
    assert "3 test_a.py" in play.record()
