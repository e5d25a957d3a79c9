"""Machines to break: a good VirtualMachine and a good VirtualMachineInstance, with changes by path."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from paddock.kubernetes.admission import AdmissionResult, admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

# A change that takes a member away.
GONE = object()
HARDWARE = {"VirtualMachine": "spec.template.spec", "VirtualMachineInstance": "spec"}
METADATA = {"VirtualMachine": "spec.template.metadata", "VirtualMachineInstance": "metadata"}
_SPEC: dict[str, Any] = {
    "domain": {
        "memory": {"guest": "1Gi"},
        "devices": {
            "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
            "interfaces": [{"name": "default", "masquerade": {}}],
        },
    },
    "networks": [{"name": "default", "pod": {}}],
    "volumes": [{"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:38"}}],
}
Changes = Mapping[str, Any]


def place(path: str, kind: str) -> str:
    """A path with P for the hardware and M for the metadata of the running machine, as a path of the kind."""
    for letter, prefix in (("P", HARDWARE[kind]), ("M", METADATA[kind])):
        if path == letter or path.startswith((f"{letter}.", f"{letter}[")):
            return prefix + path[1:]
    return path


def machine(changes: Changes | None = None, kind: str = "VirtualMachine") -> dict[str, Any]:
    """A good object of the kind, changed."""
    raw: dict[str, Any] = {"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": "vm", "namespace": "default"}}
    if kind == "VirtualMachine":
        raw["spec"] = {"runStrategy": "Always", "template": {"spec": copy.deepcopy(_SPEC)}}
    else:
        raw["spec"] = copy.deepcopy(_SPEC)
    for path, value in (changes or {}).items():
        _put(raw, place(path, kind), value)
    return raw


def _put(raw: dict[str, Any], path: str, value: Any) -> None:
    *way, last = [int(step[1:-1]) if step[0] == "[" else step for step in re.findall(r"\[\d+\]|[^.\[]+(?:\[[^\]\d][^\]]*\])?", path)]
    here: Any = raw
    for step, following in zip(way, [*way[1:], last], strict=True):
        if isinstance(step, int):
            while len(here) <= step:
                here.append({})
            here = here[step]
        else:
            here = here.setdefault(step, [] if isinstance(following, int) else {})
    if value is GONE:
        here.pop(last, None)
    elif isinstance(last, int) and last == len(here):
        here.append(copy.deepcopy(value))
    else:
        here[last] = copy.deepcopy(value)


def admitted(changes: Changes | None = None, kind: str = "VirtualMachine", **settings: Any) -> AdmissionResult:
    """Return the admission of a changed object."""
    return admit(machine(changes, kind), AdmissionSettings(**settings))


def errors(admission: AdmissionResult) -> list[tuple[str, str]]:
    """The places and messages of what refuses an object."""
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]


def warnings(admission: AdmissionResult) -> list[tuple[str, str]]:
    """The places and messages of the warnings."""
    return [(found.field, found.message) for found in admission.findings if found.severity is Severity.WARNING]
