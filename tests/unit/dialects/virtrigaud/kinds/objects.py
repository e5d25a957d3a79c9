"""Good objects of each VirtRigaud kind, to be changed by path and admitted."""

import copy
import re
from typing import Any

import pytest

from paddock.kubernetes.admission import AdmissionResult, admit
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings

# A change that takes a member away.
GONE = object()

MACHINE: dict[str, Any] = {"providerRef": {"name": "p"}, "classRef": {"name": "c"}, "imageRef": {"name": "i"}}
SPECS: dict[str, dict[str, Any]] = {
    "VirtualMachine": MACHINE,
    "VMClass": {"cpu": 2, "memory": "4Gi"},
    "VMImage": {"source": {"http": {"url": "https://images.example.com/a.qcow2"}}},
    "VMNetworkAttachment": {"network": {"libvirt": {"bridge": {"name": "br0"}}}},
    "Provider": {
        "type": "libvirt",
        "endpoint": "qemu:///system",
        "credentialSecretRef": {"name": "s"},
        "runtime": {"image": "registry.example.com/provider:v1"},
    },
    "VMSnapshot": {"vmRef": {"name": "vm"}},
    "VMClone": {"source": {"vmRef": {"name": "vm"}}, "target": {"name": "copy"}},
    "VMMigration": {
        "source": {"vmRef": {"name": "vm"}},
        "target": {"name": "vm-2", "providerRef": {"name": "q"}, "classRef": {"name": "c"}},
    },
    "VMSet": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": MACHINE},
    },
    "VMPlacementPolicy": {"hard": {"clusters": ["a"]}},
}
KINDS = tuple(SPECS)


def thing(kind: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """A good object of the kind, changed; paths begin at the object, or at its spec when they begin with a dot."""
    raw: dict[str, Any] = {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "it", "namespace": "team"},
        "spec": copy.deepcopy(SPECS[kind]),
    }
    for path, value in (changes or {}).items():
        put(raw, f"spec{path}" if path.startswith(".") else path, value)
    return raw


def put(raw: dict[str, Any], path: str, value: Any) -> None:
    """Set what stands at a path, making what leads there."""
    *way, last = [int(step[1:-1]) if step[0] == "[" else step for step in re.findall(r"\[\d+\]|[^.\[]+", path)]
    here: Any = raw
    for step, following in zip(way, [*way, last][1:], strict=True):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            while len(here) <= step:
                here.append(copy.deepcopy(empty))
            here = here[step]
        else:
            here = here.setdefault(step, empty)
    if value is GONE:
        del here[last]
    elif isinstance(last, int) and last == len(here):
        here.append(copy.deepcopy(value))
    else:
        here[last] = copy.deepcopy(value)


def admitted(kind: str, changes: dict[str, Any] | None = None, **settings: Any) -> AdmissionResult:
    """Return the admission of an object."""
    return admit(thing(kind, changes), AdmissionSettings(**settings))


def said(admission: AdmissionResult, severity: Severity = Severity.ERROR) -> list[tuple[str, str]]:
    """Places and messages of one severity."""
    return [(found.field, found.message) for found in admission.findings if found.severity is severity]


def marks(items: tuple[int, ...]) -> list[pytest.MarkDecorator]:
    """The items of the specification's checklist that a case proves."""
    return [pytest.mark.spec("virtrigaud", *items)] if items else []
