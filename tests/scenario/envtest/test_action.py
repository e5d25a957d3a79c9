"""The workflow action: its description, and what its script does in a job."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[3] / "deploy" / "action"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text())
SCRIPT = FOLDER / "start.sh"


def _job(tmp_path: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the script as a runner does, with the program of this tree."""
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m paddock.app "$@"\n')
    program.chmod(0o755)
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH")}
    environment = {**os.environ, **files, "RUNNER_TEMP": str(tmp_path), "PADDOCK": str(program), **variables}
    return subprocess.run([str(SCRIPT)], check=False, capture_output=True, text=True, timeout=120, env=environment)


def test_the_description_is_a_composite_action() -> None:
    assert ACTION["name"] and ACTION["description"] and ACTION["runs"]["using"] == "composite"
    (step,) = ACTION["runs"]["steps"]
    assert step["shell"] == "bash" and step["run"].endswith('/start.sh"') and os.access(SCRIPT, os.X_OK)
    assert all(each["description"] and isinstance(each["default"], str) for each in ACTION["inputs"].values())


def test_the_description_passes_each_input_to_the_script() -> None:
    (step,) = ACTION["runs"]["steps"]
    expressions = {re.sub(r"\$\{\{ inputs\.(.+) }}", r"\1", value): name for name, value in step["env"].items()}
    assert expressions.keys() == ACTION["inputs"].keys()
    script = SCRIPT.read_text()
    assert all(re.search(rf"\$\{{{name}:-", script) for name in expressions.values())
    assert ACTION["outputs"]["kubeconfig"]["value"] == f"${{{{ steps.{step['id']}.outputs.kubeconfig }}}}"


def test_a_job_gets_a_kubeconfig(tmp_path: Path) -> None:
    directory = tmp_path / "paddock"
    try:
        done = _job(tmp_path, KUBEVIRT_RELEASE="1.6", NODES="2", OPTIONS="--workloads stored")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "github_env").read_text() == f"KUBECONFIG={directory}/kubeconfig\n"
        assert (tmp_path / "github_output").read_text() == f"kubeconfig={directory}/kubeconfig\n"
        command = [sys.executable, "-m", "paddock.app", "get", "nodes"]
        environment = {**os.environ, "KUBECONFIG": str(directory / "kubeconfig")}
        nodes = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        assert "simulated-1" in nodes and "simulated-2" in nodes
    finally:
        end = [sys.executable, "-m", "paddock.app", "down", "--dir", str(directory), "--purge", "--yes", "--delete-data"]
        subprocess.run(end, check=False, capture_output=True)


@pytest.mark.parametrize(
    ("name", "value", "why"), [("KUBEVIRT_RELEASE", "1.2", "no release of KubeVirt"), ("NODES", "0", "no number of nodes")]
)
def test_a_wrong_input_fails_the_step(name: str, value: str, why: str, tmp_path: Path) -> None:
    done = _job(tmp_path, **{name: value})
    assert done.returncode and why in done.stderr
    assert not (tmp_path / "github_env").exists()
