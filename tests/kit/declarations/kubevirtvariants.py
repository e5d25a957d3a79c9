"""Objects to ask KubeVirt's admission and ours about: `unit/kubevirt/kinds/admission/variants.yaml` says which, by name."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "unit" / "kubevirt" / "kinds" / "admission"
VERDICTS = FOLDER / "verdicts.yaml"
# Feature gates: those that KubeVirt 1.9 has by default, and with those that guard what the variants use.
SETTINGS: dict[str, tuple[str, ...]] = {
    "default": (),
    "gates": ("HostDevices", "HostDevicesWithDRA", "PersistentReservation", "PortRangesSpec", "WorkloadEncryptionTDX"),
}
_SPEC: dict[str, Any] = {
    "domain": {
        "devices": {
            "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
            "interfaces": [{"name": "default", "masquerade": {}}],
        },
        "memory": {"guest": "1Gi"},
    },
    "networks": [{"name": "default", "pod": {}}],
    "volumes": [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:38"}}],
}


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object with its name, such as `VirtualMachine no-memory`."""
    table = yaml.safe_load((FOLDER / "variants.yaml").read_text())
    for name, changes in table["machines"].items():
        spec = _changed(changes)
        yield f"VirtualMachineInstance {name}", _object("kubevirt.io/v1", "VirtualMachineInstance", spec)
        machine = {"runStrategy": "Halted", "template": {"spec": spec}}
        yield f"VirtualMachine {name}", _object("kubevirt.io/v1", "VirtualMachine", machine)
    for kind, rows in table["others"].items():
        version, word = kind.split()
        for name, spec in rows.items():
            yield f"{word} {name}", _object(version, word, spec)


def _object(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "default"}, "spec": copy.deepcopy(spec)}


def _changed(changes: dict[str, Any]) -> dict[str, Any]:
    spec = copy.deepcopy(_SPEC)
    for path, value in changes.items():
        *way, last = path.split(".")
        at = spec
        for step in way:
            at = at.setdefault(step, {})
        if value is None:
            at.pop(last, None)
        else:
            at[last] = value
    return spec
