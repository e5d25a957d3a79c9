"""The chart, rendered by a real helm."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "kubevirt-operator"
NAMESPACE = "kubevirt-operator-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kubevirt-operator-controller-manager"


@dataclass(frozen=True)
class Helm:
    """A helm with a home of its own."""

    program: Path
    home: Path

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """One command."""
        environment = {"PATH": os.defpath, "HOME": str(self.home)}
        return subprocess.run([str(self.program), *arguments], capture_output=True, text=True, env=environment, timeout=60)

    def template(self, chart: Path, *arguments: str) -> Sequence[dict[str, Any]]:
        """The objects of a chart."""
        ran = self.run("template", "kubevirt-operator", str(chart), "-n", NAMESPACE, "--kube-version", "1.34", *arguments)
        assert ran.returncode == 0, ran.stderr
        return [each for each in yaml.safe_load_all(ran.stdout) if each]
