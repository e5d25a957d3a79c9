"""The Go package that starts a living KubeVirt for tests (`envtest/`): its own tests, with the program of this tree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference.build import built
from tests.reference.recipes import ENVTEST_PACKAGE

pytestmark = [pytest.mark.reference, pytest.mark.long]


def test_its_tests_pass(tmp_path: Path) -> None:
    program = tmp_path / "paddock"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m paddock.app "$@"\n')
    program.chmod(0o755)
    suite = built(ENVTEST_PACKAGE, say=print) / "envtest"
    environment = {**os.environ, "PADDOCK": str(program), "TMPDIR": str(tmp_path)}
    done = subprocess.run([str(suite), "-test.v"], check=False, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("--- PASS") == 4 and "started in" in done.stdout
    assert not list(tmp_path.glob("paddock-envtest-*"))
