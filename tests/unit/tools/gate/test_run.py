"""`.ci/run` with a `make` that only says what it was asked for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
MAKE = '#!/usr/bin/env bash\necho "$1 ${2:-}" >>"$0.log"\n[[ " $BROKEN " != *" $1 "* ]]\n'
GATE = ["lint", "gen-check", "test", "conformance-check"]
MISSING = [f"{suite} WHICH=missing" for suite in ("weather", "test-reference", "test-host")]
COVERED = [f"{suite} WHICH=covered" for suite in ("test-reference", "test-host", "weather")]


@pytest.mark.parametrize(
    ("broken", "asked", "code"),
    [
        ("", [*GATE, *MISSING, *COVERED], 0),
        ("lint", GATE[:1], 2),
        ("test", GATE[:3], 2),
        ("weather", [*GATE, *MISSING, *COVERED], 1),
        ("test-host", [*GATE, *MISSING, *COVERED], 1),
    ],
)
def test_the_gate_fails_fast_and_the_suites_all_run(tmp_path: Path, broken: str, asked: list[str], code: int) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    make = tmp_path / "bin/make"
    make.write_text(MAKE)
    make.chmod(0o755)
    environment = {**os.environ, "PATH": f"{make.parent}:{os.environ['PATH']}", "BROKEN": broken}
    ran = subprocess.run([tmp_path / ".ci/run"], env=environment, capture_output=True, text=True, check=False)
    assert [line.strip() for line in (tmp_path / "bin/make.log").read_text().splitlines()] == asked
    assert bool(ran.returncode) == bool(code)
    assert ("--- green" in ran.stdout) == (code == 0)
    if code == 1:
        assert re.findall(r"^    make (\S+)", ran.stdout, re.MULTILINE) == [broken, broken]
