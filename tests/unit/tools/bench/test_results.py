"""The results of runs: one home for names, units and targets, and no disturbed run in the place of a good one."""

import ast
import datetime
import os
import re
import time
from pathlib import Path

import pytest

from tools.bench import results
from tools.bench.offline import BenchError, Figure
from tools.bench.results import Circumstances
from tools.referencepages import figures as pages

BENCH = Path(results.__file__).parent
TODAY = datetime.date(2027, 1, 2)
GOOD, DISTURBED = Circumstances("0123456789ab", "a machine", 0.1), Circumstances("0123456789ab", "a machine", 1.5)
TEXT = """# Figures.

[[run]]
title = "Writes"
part = "idle"
command = "make bench"
measured = 2026-11-28
host = "another machine"
text = "Text."
figure = [
    { name = "share of a processor, server", unit = "%", paddock = 0.80, target = "<= 1 %" },
    { name = "memory of the server (PSS)", unit = "MB", paddock = 95, peer = 1900, quoted = true },
]

[[run]]
title = "Another"
command = "make"
measured = 2026-11-28
host = "another machine"
text = "Text."
figure = [
    { name = "memory of the server (PSS)", unit = "MB", paddock = 95 },
]
"""
MEASURED = [Figure("share of a processor, server", 0.123456), Figure("memory of the server (PSS)", 87.0, "a note", 2000.4)]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "runs", lambda: pages.decoded(TEXT))


def test_a_run_is_put_where_its_part_stands() -> None:
    one, other = pages.decoded(results.merged(TEXT, "idle", MEASURED, GOOD, TODAY))
    assert (one.measured, one.host, one.code, one.load) == (TODAY, "a machine", "0123456789ab", 0.1)
    assert [(each.name, each.paddock, each.peer, each.target) for each in one.figure] == [
        ("share of a processor, server", 0.1235, None, "<= 1 %"),
        ("memory of the server (PSS)", 87.0, 2000.0, ""),
    ]
    assert other == pages.decoded(TEXT)[1]


def test_a_second_run_replaces_the_first() -> None:
    again = results.merged(results.merged(TEXT, "idle", MEASURED, GOOD, TODAY), "idle", MEASURED, GOOD, TODAY)
    assert again == results.merged(TEXT, "idle", MEASURED, GOOD, TODAY)


def test_a_disturbed_run_replaces_no_good_one() -> None:
    with pytest.raises(BenchError, match=r"others used 1\.5 processors"):
        results.merged(TEXT, "idle", MEASURED, DISTURBED, TODAY)
    beside = TEXT.replace('host = "another machine"', 'host = "another machine; other work beside it"')
    (run, _) = pages.decoded(results.merged(beside, "idle", MEASURED, DISTURBED, TODAY))
    assert (run.is_good, run.circumstances()) == (False, "a machine; other work used 1.5 processors; code 0123456789ab")


@pytest.mark.parametrize("measured", [MEASURED[:1], [*MEASURED, Figure("another", 1.0)]])
def test_what_is_measured_is_what_stands_there(measured: list[Figure]) -> None:
    with pytest.raises(BenchError, match="differ"):
        results.rows("idle", measured)


def test_a_run_knows_its_circumstances() -> None:
    """Others cannot use more processors than there are, apart from what the clock of a short run hides."""
    with results.circumstances() as about:
        time.sleep(0.5)
    assert 0 <= about.load <= 2 * (os.cpu_count() or 1)
    assert re.fullmatch(r"[0-9a-f]{12}", about.code)
    assert "processors" in about.host


def _pattern(node: ast.AST) -> str:
    """A text as a pattern: what is put into it may be anything. Empty for what is no text, or only that."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if not isinstance(node, ast.JoinedStr):
        return ""
    made = "".join(re.escape(str(each.value)) if isinstance(each, ast.Constant) else ".+" for each in node.values)
    return made if made.replace(".+", "") else ""


def test_names_in_code_are_names_in_the_results() -> None:
    there = [each.name for run in pages.decoded(pages.RESULTS.read_text()) if run.part for each in run.figure]
    assert len(set(there)) == len(there)
    nodes = [node for path in BENCH.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    calls = [each for each in nodes if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "Figure"]
    names = [name for each in calls if (name := _pattern(each.args[0]))]
    assert [name for name in names if not any(re.fullmatch(name, each) for each in there)] == []
    texts = [text for each in nodes if (text := _pattern(each))]
    assert [each for each in there if not any(re.fullmatch(text, each) for text in texts)] == []
