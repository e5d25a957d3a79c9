"""Libraries that make and follow machines: Kubernetes' client-go, KubeVirt's own, and the Python client."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reference.build import Recipe
from tests.reference.clients import venv
from tests.reference.embedded import Embedded
from tests.reference.recipes import MACHINES

pytestmark = pytest.mark.reference
CHANGES = ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]


@pytest.mark.spec("kubevirt", 62)
def test_both_client_gos(embedded: Embedded, program: Callable[[Recipe], Path], namespace: str) -> None:
    command = [str(program(MACHINES) / "machines"), "-kubeconfig", str(embedded.kubeconfig), "-namespace", namespace]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = [json.loads(line) for line in ran.stdout.splitlines()]

    def those(event: str, by: str) -> list[tuple[str, str]]:
        return [(each["name"], each.get("value", "")) for each in said if (each["event"], each.get("by")) == (event, by) and "name" in each]

    assert those("made", "kubevirt") == [("typed", "Halted")]
    assert those("listed", "kubevirt") == [("typed", "")]
    assert [each["value"] for each in said if each["event"] == "refused"] == ["Conflict"]
    # Made, then an update, then a patch; none is missed, none comes twice.
    assert those("watched", "kubevirt") == [("typed", change) for change in CHANGES]
    assert ("typed", "") in those("added", "kubevirt informer") and ("typed", "") in those("deleted", "kubevirt informer")
    assert those("made", "kubernetes") == [("plain", "")]
    assert those("watched", "kubernetes") == [("plain", change) for change in (CHANGES[0], *CHANGES[2:])]
    assert ("plain", "") in those("added", "kubernetes informer") and ("plain", "") in those("deleted", "kubernetes informer")
    assert said[-1] == {"event": "end"}


@pytest.mark.spec("kubevirt", 62)
def test_the_python_client(embedded: Embedded, pytestconfig: pytest.Config, namespace: str, tmp_path: Path) -> None:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    python = venv.python(terminal.write_line if terminal else print)
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "KUBECONFIG": str(embedded.kubeconfig), "NAMESPACE": namespace}
    command = [python, venv.SCRIPTS / "machines.py"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines() == [
        "custom ADDED custom Halted",
        "custom MODIFIED custom Manual",
        "custom MODIFIED custom Manual Stopped",
        "custom DELETED custom Manual Stopped",
        "dynamic ADDED dynamic",
        "dynamic DELETED dynamic",
        "end",
    ]
