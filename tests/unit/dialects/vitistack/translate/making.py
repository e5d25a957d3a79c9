"""Machines and worlds for the tests of the translation: raw documents in, translated objects out."""

from collections.abc import Iterable
from typing import Any

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.translate import to_kubevirt
from paddock.kubernetes.admission import admit
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings

Json = dict[str, Any]
STANDARD = Rendering(default_storage_class="standard")
CARD: Json = {"name": "eth0", "networkName": "lan"}


def typed(raw: Json) -> Resource:
    """A document that is accepted, as its class."""
    admission = admit(raw, AdmissionSettings())
    assert admission.accepted, admission.findings
    assert isinstance(admission.value, Resource)
    return admission.value


def machine(spec: Json, **metadata: Any) -> Machine:
    """A machine called web in the namespace prod."""
    meta = {"name": "web", "namespace": "prod", "uid": "u-1", **metadata}
    value = typed({"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "metadata": meta, "spec": spec})
    assert isinstance(value, Machine)
    return value


def small(**spec: Any) -> Json:
    return {"template": "small", **spec}


def network(name: str = "lan", namespace: str = "prod", **spec: Any) -> Resource:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return typed({"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": meta, "spec": spec})


def secret(name: str = "keys", **data: str) -> Secret:
    return Secret(apiVersion="v1", kind="Secret", metadata=ObjectMeta(name=name, namespace="prod"), stringData=data)


def config_map(name: str = "texts", **data: str) -> ConfigMap:
    return ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name=name, namespace="prod"), data=data)


def storage_class(name: str, created: str | None = None, **annotations: str) -> StorageClass:
    keys = {"virt": "storageclass.kubevirt.io/is-default-virt-class", "default": "storageclass.kubernetes.io/is-default-class"}
    marked = {keys[key]: value for key, value in annotations.items()}
    meta = ObjectMeta(name=name, annotations=marked or None, creationTimestamp=created)
    return StorageClass(apiVersion="storage.k8s.io/v1", kind="StorageClass", metadata=meta, provisioner="x")


def definition(name: str, config: str, **labels: str) -> NetworkAttachmentDefinition:
    meta = ObjectMeta(name=name, namespace="prod", labels=labels or None)
    spec = NetworkAttachmentDefinitionSpec(config=config)
    return NetworkAttachmentDefinition(apiVersion="k8s.cni.cncf.io/v1", kind="NetworkAttachmentDefinition", metadata=meta, spec=spec)


def translated(
    spec: Json, world: Iterable[Resource] = (), rendering: Rendering = STANDARD, **metadata: Any
) -> Translated[tuple[Resource, ...]]:
    """Return the translation of a machine where the world may hold more than is given."""
    return to_kubevirt(machine(spec, **metadata), ObjectSet(world), rendering)


def objects(spec: Json, world: Iterable[Resource] = (), rendering: Rendering = STANDARD, **metadata: Any) -> dict[str, Json]:
    """Return the objects of a machine, as documents by kind and name."""
    made = [to_data(each) for each in translated(spec, world, rendering, **metadata).value]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in made}


def virtual_machine(spec: Json, world: Iterable[Resource] = (), rendering: Rendering = STANDARD, **metadata: Any) -> Json:
    return objects(spec, world, rendering, **metadata)["VirtualMachine/web"]


def instance(spec: Json, world: Iterable[Resource] = (), rendering: Rendering = STANDARD, **metadata: Any) -> Json:
    found: Json = virtual_machine(spec, world, rendering, **metadata)["spec"]["template"]["spec"]
    return found


def devices(spec: Json, world: Iterable[Resource] = (), rendering: Rendering = STANDARD, **metadata: Any) -> Json:
    found: Json = instance(spec, world, rendering, **metadata)["domain"]["devices"]
    return found
