"""Suites of controller-runtime's own tests pass with Paddock's assets of envtest."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference.build import Program, built
from tests.reference.recipes import RUNTIME, RUNTIME_SUITES

pytestmark = pytest.mark.reference
SECONDS = 300


@pytest.fixture(scope="module")
def suites(pytestconfig: pytest.Config) -> Path:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(RUNTIME_SUITES, say=terminal.write_line if terminal else print)


def sources() -> Path:
    """The folder of the module: its suites read their test data there."""
    command = ["go", "mod", "download", "-json", f"{RUNTIME}@{RUNTIME_SUITES.version}"]
    said = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True, timeout=SECONDS)
    return Path(json.loads(said.stdout)["Dir"])


@pytest.mark.spec("kube-api", 148)
@pytest.mark.parametrize("program", RUNTIME_SUITES.programs, ids=lambda program: program.name)
def test_a_suite_passes(suites: Path, program: Program, tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    subprocess.run([sys.executable, "-m", "paddock.app", "envtest-assets", str(assets)], check=True, capture_output=True)
    ran = subprocess.run(
        [suites / program.name, "-ginkgo.no-color"],
        capture_output=True,
        text=True,
        env={**os.environ, "KUBEBUILDER_ASSETS": str(assets)},
        timeout=SECONDS,
        cwd=sources() / program.package.removeprefix(f"{RUNTIME}/"),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " 0 Failed" in ran.stdout
    assert " 0 Passed" not in ran.stdout
