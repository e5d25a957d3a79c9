"""Objects to translate: a good machine with everything it refers to, to be changed by path; and what became of them."""

import base64
import copy
from collections.abc import Iterator
from typing import Any

from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.translate import to_kubevirt
from paddock.kubernetes.admission import admit
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss, Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from tests.unit.dialects.virtrigaud.kinds.objects import put

Json = dict[str, Any]
Changes = dict[str, Any]
_GROUP = "infra.virtrigaud.io/v1beta1"
SPECS: dict[str, Json] = {
    "VirtualMachine": {
        "providerRef": {"name": "local"},
        "classRef": {"name": "small"},
        "imageRef": {"name": "debian"},
        "networks": [{"name": "eth0", "networkRef": {"name": "lan"}}],
    },
    "VMClass": {"cpu": 2, "memory": "2Gi"},
    "VMImage": {"source": {"http": {"url": "https://images.example.com/debian.qcow2"}}},
    "VMNetworkAttachment": {"network": {"libvirt": {"bridge": {"name": "br0"}}}},
    "Provider": {
        "type": "qemu",
        "endpoint": "qemu:///system",
        "credentialSecretRef": {"name": "keys"},
        "runtime": {"image": "paddock/provider-qemu:latest"},
    },
}
NAMES = {"VirtualMachine": "web", "VMClass": "small", "VMImage": "debian", "VMNetworkAttachment": "lan", "Provider": "local"}


def raw(kind: str, changes: Changes | None = None, name: str = "") -> Json:
    """A good object of the kind, changed; paths begin at the object, or at its spec when they begin with a dot."""
    made: Json = {"apiVersion": _GROUP, "kind": kind, "metadata": {"name": name or NAMES[kind]}, "spec": copy.deepcopy(SPECS[kind])}
    for path, value in (changes or {}).items():
        put(made, f"spec{path}" if path.startswith(".") else path, value)
    return made


def typed(document: Json) -> Any:
    """An object that the rules accept."""
    admission = admit(document, AdmissionSettings())
    errors = [(found.field, found.message) for found in admission.findings if found.severity is Severity.ERROR]
    assert errors == []
    return admission.value


def secret(name: str, **values: str) -> Secret:
    """A Secret beside the machine."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return Secret(apiVersion="v1", kind="Secret", metadata=typed_meta(name), data=data)


def typed_meta(name: str) -> Any:
    return typed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).metadata


class Scene:
    """A machine and its world. Changes are given by kind; `others` are further objects."""

    def __init__(self, changes: dict[str, Changes] | None = None, *others: Resource, without: tuple[str, ...] = ()) -> None:
        changes = changes or {}
        self.objects = {kind: typed(raw(kind, changes.get(kind))) for kind in SPECS if kind not in without}
        self.others = others

    @property
    def vm(self) -> VirtrigaudVirtualMachine:
        vm: VirtrigaudVirtualMachine = self.objects["VirtualMachine"]
        return vm

    def world(self, *, complete: bool = False) -> ObjectSet:
        return ObjectSet([*self.objects.values(), *self.others], complete=complete)

    def translated(self, *, complete: bool = False, **rendering: Any) -> Translated[tuple[Resource, ...]]:
        return to_kubevirt(self.vm, self.world(complete=complete), Rendering(**rendering))


class Made:
    """The translation of a scene."""

    def __init__(self, translated: Translated[tuple[Resource, ...]]) -> None:
        self.resources = translated.value
        self.losses = translated.losses

    @property
    def machine(self) -> Machine:
        last = self.resources[-1]
        assert isinstance(last, Machine)
        return last

    @property
    def definitions(self) -> list[NetworkAttachmentDefinition]:
        return [each for each in self.resources if isinstance(each, NetworkAttachmentDefinition)]

    @property
    def secrets(self) -> dict[str, dict[str, bytes]]:
        return {each.metadata.name: decoded(each) for each in self.resources if isinstance(each, Secret)}

    def lost(self) -> list[tuple[str, str]]:
        return [(loss.of, loss.field) for loss in self.losses]

    def loss(self, of: str, field: str) -> Loss:
        return next(loss for loss in self.losses if (loss.of, loss.field) == (of, field))


def made(changes: dict[str, Changes] | None = None, *others: Resource, **rendering: Any) -> Made:
    """The scene with these changes, translated."""
    return Made(Scene(changes, *others).translated(**rendering))


def at(data: Any, path: str | tuple[str | int, ...]) -> Any:
    """Return the value at a path of plain data; `spec.disks.0.name`. None when there is nothing."""
    for step in path.split(".") if isinstance(path, str) else path:
        if isinstance(data, list):
            data = data[int(step)] if int(step) < len(data) else None
        else:
            data = data.get(step) if isinstance(data, dict) else None
    return data


def plain(resource: Resource) -> Json:
    """An object as data."""
    return to_data(resource)


def leaves(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every scalar and every empty object of plain data, with its path."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list) and data:
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path, data
