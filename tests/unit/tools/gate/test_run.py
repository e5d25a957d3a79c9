"""`.ci/run` with a `make` that only says what it was asked for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
MAKE = """#!/usr/bin/env bash
echo "$1 ${2:-}" >>"$0.log"
[[ $1 != test-host ]] || echo "===== 2 failed, 400 passed, 87 skipped, 1 deselected in 1434.39s (0:23:54) ====="
line() { echo "gate: $1 ran, $2 proven by the record, 3 slow and proven on other code, 4 absent, $3 unproven${4:-}"; }
[[ $1 != weather ]] || line 5 0 0
[[ $1 != test-reference ]] || line 7 1 0 " (absent: kvm 4; the oldest proof is of 2026-11-03)"
[[ $1 != test-host ]] || line 400 2 "$([[ -e tests/host/passed.txt ]] && echo 0 || echo 12)" " (the oldest proof is of 2026-11-20)"
[[ $1 != test ]] || echo "== 12452 passed, 1 skipped in 181.03s =="
[[ " $BROKEN " != *" $1 "* ]]
"""
GATE = ["lint", "gen-check", "test", "conformance-check", "web-check", "docs"]
MISSING = [f"{suite} WHICH=missing" for suite in ("weather", "test-reference", "test-host")]
COVERED = [f"{suite} WHICH=covered" for suite in ("test-reference", "test-host", "weather")]


@pytest.mark.parametrize(
    ("broken", "recorded", "asked", "code"),
    [
        ("", True, [*GATE, *MISSING, *COVERED], 0),
        ("", False, [*GATE, *MISSING], 0),
        ("lint", True, GATE[:1], 2),
        ("test", True, GATE[:3], 2),
        ("weather", True, [*GATE, *MISSING, *COVERED], 1),
        ("test-host", True, [*GATE, *MISSING, *COVERED], 1),
    ],
)
def test_the_gate_fails_fast_and_the_suites_all_run(tmp_path: Path, broken: str, recorded: bool, asked: list[str], code: int) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".ci").mkdir()
    for suite in ("reference", "host", "scenario/fronts") if recorded else ():
        (tmp_path / "tests" / suite).mkdir(parents=True)
        (tmp_path / "tests" / suite / "passed.txt").touch()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    make = tmp_path / "bin/make"
    make.write_text(MAKE)
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{make.parent}:{os.environ['PATH']}", "BROKEN": broken}
    ran = subprocess.run([tmp_path / ".ci/run"], env=environment, capture_output=True, text=True, check=False)
    assert [line.strip() for line in (tmp_path / "bin/make.log").read_text().splitlines()] == asked
    assert bool(ran.returncode) == bool(code)
    assert ("--- green" in ran.stdout) == (code == 0)
    if code == 0:
        total = "4 failed, 13252 passed, 175 skipped" if recorded else "2 failed, 12852 passed, 88 skipped"
        assert ("--- green, but for 12 tests that nothing proves" in ran.stdout) == (not recorded)
        sums = (824, 6, 18, 24) if recorded else (412, 3, 9, 12)
        proved = "{} ran, {} proven by the record, {} slow and proven on other code, {} absent, since 2026-11-03".format(*sums)
        assert f"--- long suites: {proved}: {0 if recorded else 12} unproven\n" in ran.stdout
        assert f"=== all suites: {total} in " in ran.stdout
    if code == 1:
        assert re.findall(r"^    make (\S+)", ran.stdout, re.MULTILINE) == [broken, broken]
