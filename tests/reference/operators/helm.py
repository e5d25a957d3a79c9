"""The charts, rendered by a real helm."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[3] / "deploy" / "helm"
# Named as in the Vitistack document, with the rights of the document.
CHART = CHARTS / "kubevirt-operator"
# Paddock's own, with no rights but those that are used.
PADDOCK = CHARTS / "paddock"
NAMESPACE = "kubevirt-operator-system"


@dataclass(frozen=True)
class Helm:
    """A helm with a home of its own."""

    program: Path
    home: Path

    def run(self, *arguments: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        """One command."""
        environment = {"PATH": os.defpath, "HOME": str(self.home)}
        return subprocess.run([str(self.program), *arguments], capture_output=True, text=True, env=environment, timeout=seconds)

    def template(self, chart: Path, *arguments: str) -> Sequence[dict[str, Any]]:
        """The objects of a chart."""
        ran = self.run("template", chart.name, str(chart), "-n", NAMESPACE, "--kube-version", "1.34", "--skip-tests", *arguments)
        assert ran.returncode == 0, ran.stderr
        return [each for each in yaml.safe_load_all(ran.stdout) if each]
