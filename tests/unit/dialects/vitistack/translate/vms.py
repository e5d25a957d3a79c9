"""KubeVirt machines for the tests of the way back: one that fits whole, and what is said on top."""

from typing import Any

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.translate import from_kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.admission import admit
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from tests.unit.dialects.vitistack.translate.making import STANDARD, Json

ROOT = {"name": "root", "disk": {"bus": "virtio"}}
CLAIM = {"name": "root", "persistentVolumeClaim": {"claimName": "web-root"}}
POD_CARD = {"name": "default", "model": "virtio", "masquerade": {}}
POD = {"name": "default", "pod": {}}
BRIDGE = '{"cniVersion":"1.0.0","name":"lan","plugins":[{"type":"bridge","bridge":"br7","vlan":7,"mtu":1400,"ipam":{}}]}'
INSTANCE = "spec.template.spec"


def claim(name: str = "web-root", **spec: Any) -> Json:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "9Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "prod"}, "spec": asked}


def data_volume(name: str = "web-root", **spec: Any) -> Json:
    asked = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "9Gi"}}}, **spec}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name, "namespace": "prod"}, "spec": asked}


def vm(
    domain: Json | None = None, devices: Json | None = None, instance: Json | None = None, spec: Json | None = None, **metadata: Any
) -> Json:
    """A machine that fits, and what is said on top."""
    hardware = {"cpu": {"cores": 2}, "memory": {"guest": "3Gi"}, **(domain or {})}
    hardware["devices"] = {"disks": [ROOT], "interfaces": [POD_CARD], "networkInterfaceMultiqueue": True, **(devices or {})}
    inner = {"domain": hardware, "volumes": [CLAIM], "networks": [POD], **(instance or {})}
    meta = {"name": "web", "namespace": "prod", **metadata}
    outer = {"running": True, "template": {"spec": inner}, **(spec or {})}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": meta, "spec": outer}


def typed(raw: Json) -> Any:
    """The document as its class, whether or not KubeVirt's rules would take it."""
    kind = catalog.find(raw["apiVersion"].rpartition("/")[0], raw["kind"])
    assert kind is not None
    return from_data(check(kind.cls, raw).value, kind.cls)


def back(raw: Json, *world: Json | Resource, rendering: Rendering = STANDARD) -> Translated[tuple[Resource, ...]]:
    value = typed(raw)
    assert isinstance(value, VirtualMachine)
    given = [each if isinstance(each, Resource) else typed(each) for each in world or (claim(),)]
    made = from_kubevirt(value, ObjectSet(given), rendering)
    for each in made.value:
        admission = admit(to_data(each), AdmissionSettings())
        assert admission.accepted, admission.findings
    return made


def machine(made: Translated[tuple[Resource, ...]]) -> Machine:
    found = made.value[-1]
    assert isinstance(found, Machine)
    return found


def spec_of(raw: Json, *world: Json | Resource, rendering: Rendering = STANDARD) -> Json:
    found: Json = to_data(machine(back(raw, *world, rendering=rendering)))["spec"]
    return found


def losses(raw: Json, *world: Json | Resource) -> list[str]:
    return [loss.field if loss.of.startswith("VirtualMachine/") else f"{loss.of} {loss.field}" for loss in back(raw, *world).losses]
