"""KubeVirt on the cluster, as an administrator installs it: its images are there, and virt-operator does the rest."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.reference.build import Recipe, built
from tests.reference.cluster import archive, images
from tests.reference.cluster.control import apply, kubectl, wait
from tests.reference.cluster.namespace import Machine
from tests.reference.recipes import KUBEVIRT, KUBEVIRT_NODE, PAUSE

NAMESPACE = "kubevirt"
_DEPLOY_SECONDS = 1800.0


def load_pause(machine: Machine) -> None:
    """Import the image without which no pod starts."""
    file = machine.directory / "files" / "pause.tar"
    images.pause(file, built(PAUSE) / "pause")
    load_archive(machine, file)


def load(machine: Machine, tar: Path) -> None:
    """Import the image of KubeVirt into containerd, with the root in a tar file below them."""
    programs = {path.name: path for recipe in recipes() for path in built(recipe).iterdir()}
    file = machine.directory / "files" / "images.tar"
    images.write(file, archive.measured(tar), programs, _sources(), KUBEVIRT.version)
    load_archive(machine, file)


def load_archive(machine: Machine, file: Path) -> None:
    """Import an archive that lies with the files of the cluster, and remove it."""
    machine.run("ctr", "-n", "k8s.io", "images", "import", "--local", f"/cluster/{file.name}")
    file.unlink()


def install(machine: Machine) -> None:
    """Install KubeVirt, and return when virt-operator calls it deployed and the node takes machines."""
    objects = _objects()
    apply(machine, *objects[:-1])
    wait("the kind KubeVirt", lambda: _applied(machine, objects[-1]))
    wait("KubeVirt", lambda: _phase(machine) == "Deployed", _DEPLOY_SECONDS)
    schedulable = ("get", "nodes", "-l", "kubevirt.io/schedulable=true", "-o", "name")
    wait("virt-handler", lambda: kubectl(machine, *schedulable).strip() != "", _DEPLOY_SECONDS)


def is_installed(machine: Machine) -> bool:
    """Return whether virt-operator has deployed it."""
    kind = kubectl(machine, "get", "crd", "kubevirts.kubevirt.io", "-o", "name", "--ignore-not-found")
    return bool(kind.strip()) and _phase(machine) == "Deployed"


def recipes() -> Sequence[Recipe]:
    """Return what is built for it."""
    return (KUBEVIRT, *KUBEVIRT_NODE)


def _applied(machine: Machine, thing: dict[str, Any]) -> bool:
    """Apply an object whose kind may be too new to be served."""
    apply(machine, thing)
    return True


def _phase(machine: Machine) -> str:
    return kubectl(machine, "get", "kubevirt", "-n", NAMESPACE, "kubevirt", "-o", "jsonpath={.status.phase}", "--ignore-not-found")


def _objects() -> list[dict[str, Any]]:
    """Return what an administrator applies; the last one asks virt-operator for the rest."""
    program = built(KUBEVIRT_NODE[0]) / "installer"
    said = subprocess.run([program, images.REGISTRY, KUBEVIRT.version], capture_output=True, check=True).stdout
    return [json.loads(line) for line in said.splitlines()]


def _sources() -> Path:
    """Return the folder of KubeVirt's module in Go's cache."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", KUBEVIRT.release]
    said = subprocess.run(command, cwd=KUBEVIRT_NODE[0].module, capture_output=True, text=True, check=True)
    return Path(said.stdout.strip())
