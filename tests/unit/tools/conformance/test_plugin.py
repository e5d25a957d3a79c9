"""The recorder in a real pytest run, in one process and with workers."""

import sys
from pathlib import Path

import pytest

from tools.conformance.results import ProviderRun, read

ROOT = Path(__file__).parents[4]

CONFTEST = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from tools.conformance.plugin import ConformanceRecorder

def pytest_configure(config):
    config.addinivalue_line("markers", "spec(name, *items): x")
    specs = Path({str(ROOT / "docs/spec")!r})
    digests = lambda files: dict.fromkeys(files, "d1")
    config.pluginmanager.register(ConformanceRecorder(spec_folder=specs, results=Path("out.json"), digests=digests))
"""

TESTS = """
import pytest

@pytest.mark.spec("stakater", 1, 2)
@pytest.mark.spec("kubevirt", 61)
def test_passes(): pass

@pytest.mark.spec("stakater", 3)
@pytest.mark.parametrize("case", [1, 2])
def test_half(case): assert case == 1

@pytest.mark.spec("stakater", 4)
def test_skips(): pytest.skip("no reason")

@pytest.fixture
def broken():
    yield
    raise RuntimeError("teardown")

@pytest.mark.spec("stakater", 5)
def test_teardown_fails(broken): pass

@pytest.mark.spec("stakater", 6)
@pytest.mark.xfail
def test_expected_failure(): assert False

def test_unmarked(): pass

def test_run(record_property):
    run = '{"driver": "toy", "against": "a table", "capabilities": [], "cases": {"validate": "passed"}}'
    record_property("provider-run", run)
"""


def run(pytester: pytest.Pytester, *options: str) -> None:
    """One run, in this process; the bytecode of a file that is written again within a second would be taken for the new one's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_records_outcomes(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=TESTS)
    run(pytester, *workers)
    found = read(pytester.path / "out.json")
    assert [(one.node, one.outcome) for one in found] == [
        ("test_it.py::test_expected_failure", "skipped"),
        ("test_it.py::test_half[1]", "passed"),
        ("test_it.py::test_half[2]", "failed"),
        ("test_it.py::test_passes", "passed"),
        ("test_it.py::test_run", "passed"),
        ("test_it.py::test_skips", "skipped"),
        ("test_it.py::test_teardown_fails", "failed"),
    ]
    assert {(one.code, bool(one.date)) for one in found} == {("d1", True)}
    assert found[3].items == (("kubevirt", 61), ("stakater", 1), ("stakater", 2))
    assert found[4].runs == (ProviderRun("toy", "a table", (), (("validate", "passed"),)),)


def test_a_mark_names_the_clauses_of_an_item(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it='import pytest\n@pytest.mark.spec("kube-api", 27, "names", "labels")\ndef test_it(): pass')
    run(pytester)
    assert [one.items for one in read(pytester.path / "out.json")] == [(("kube-api", 27),)]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_a_part_keeps_what_is_known_of_the_rest(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=TESTS, test_gone=TESTS, test_other=TESTS)
    run(pytester)
    (pytester.path / "test_gone.py").unlink()
    pytester.makepyfile(test_it=TESTS.replace("[1, 2]", "[2, 3]").replace("assert case == 1", "assert case == 3"))
    run(pytester, "test_it.py", "-k", "test_half", *workers)
    found = {one.node: one.outcome for one in read(pytester.path / "out.json")}
    # run anew; one case is there no more, and another is new
    assert {node: found.pop(node) for node in sorted(found) if "test_it.py::test_half" in node} == {
        "test_it.py::test_half[2]": "failed",
        "test_it.py::test_half[3]": "passed",
    }
    # passed over, and not looked at
    assert found["test_it.py::test_passes"] == found["test_other.py::test_half[1]"] == "passed"
    assert {node.partition("::")[0] for node in found} == {"test_it.py", "test_other.py"}
    assert len(found) == 5 + 7


def test_a_test_that_is_skipped_keeps_what_it_showed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    mark = 'import pytest\n@pytest.mark.spec("stakater", 1)\n'
    for body, outcome in (
        ("pass", "passed"),
        ("pytest.skip('needs kvm: there is none')", "passed"),
        ("pytest.xfail('broken')", "skipped"),
        ("pytest.skip('needs kvm: there is none')", "skipped"),
    ):
        pytester.makepyfile(test_it=f"{mark}def test_it(): {body}")
        run(pytester)
        assert [one.outcome for one in read(pytester.path / "out.json")] == [outcome]


@pytest.mark.parametrize(
    ("reason", "recorded"),
    [
        ("needs kvm: there is none", ["skipped"]),
        ("slow: `make test-host SLOW=1` runs it", []),
        ("no time: the run was given 60 s", []),
    ],
)
def test_only_what_the_machine_lacks_is_noted_as_skipped(pytester: pytest.Pytester, reason: str, recorded: list[str]) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=f'import pytest\n@pytest.mark.spec("stakater", 1)\ndef test_it(): pytest.skip({reason!r})')
    run(pytester)
    assert [one.outcome for one in read(pytester.path / "out.json")] == recorded


def test_a_whole_run_keeps_nothing_of_what_it_ran(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    for test in ("def test_it(): pass", "def test_it(): assert False", "def test_other(): pass"):
        pytester.makepyfile(test_it=f'import pytest\n@pytest.mark.spec("stakater", 1)\n{test}')
        run(pytester)
        wanted = "failed" if "False" in test else "passed"
        assert [(one.node.partition("::")[2], one.outcome) for one in read(pytester.path / "out.json")] == [
            (test.partition("(")[0].removeprefix("def "), wanted)
        ]


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('"nobody", 1', "there is no spec 'nobody'"),
        ('"stakater", 73', "items 1 to 72, not 73"),
        ('"stakater", 0', "items 1 to 72, not 0"),
        ('"stakater", "1"', "items 1 to 72, not '1'"),
        ('"stakater"', "at least one item"),
        ('"kube-api", 27', "has the clauses 'names', 'labels'"),
        ('"kube-api", 26, 27', "name those that the test proves"),
        ('"kube-api", 27, "names", "colours"', "has the clauses"),
        ('"kube-api", 1, "names"', "item 1 of kube-api has no clauses"),
    ],
)
def test_a_wrong_mark_stops_the_run(pytester: pytest.Pytester, mark: str, message: str) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(f"import pytest\n@pytest.mark.spec({mark})\ndef test_it(): pass")
    run = pytester.runpytest_inprocess()
    run.assert_outcomes(errors=1)
    assert message in run.stdout.str()


def test_a_wrong_mark_stops_a_run_with_workers(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_wrong='import pytest\n@pytest.mark.spec("nobody", 1)\ndef test_it(): pass', test_good="def test_it(): pass")
    run = pytester.runpytest_subprocess("-n", "1")
    assert run.ret != 0
    assert "there is no spec 'nobody'" in run.stdout.str()
