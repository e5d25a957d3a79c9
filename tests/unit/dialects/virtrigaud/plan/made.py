"""Objects of VirtRigaud as decisions see them."""

from typing import Any

from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import VMNetworkAttachment
from paddock.dialects.virtrigaud.plan import references
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.meta.world import ObjectSet

Data = dict[str, Any]


def meta(name: str, **members: Any) -> Data:
    return {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, **members}


def machine(status: Data | None = None, metadata: Data | None = None, **spec: Any) -> VirtrigaudVirtualMachine:
    given = {"providerRef": {"name": "lab"}, "classRef": {"name": "small"}, "imageRef": {"name": "ubuntu"}, **spec}
    given = {name: value for name, value in given.items() if value is not None}
    return from_data({"metadata": meta("web", **(metadata or {})), "spec": given, "status": status}, VirtrigaudVirtualMachine)


def vmclass(**spec: Any) -> VMClass:
    return from_data({"metadata": meta("small"), "spec": {"cpu": 2, "memory": "4Gi", **spec}}, VMClass)


def image(source: Data | None = None, status: Data | None = None, **spec: Any) -> VMImage:
    given = {"source": source or {"libvirt": {"path": "/images/ubuntu.qcow2"}}, **spec}
    return from_data({"metadata": meta("ubuntu"), "spec": given, "status": status}, VMImage)


def network(config: Data | None = None, **spec: Any) -> VMNetworkAttachment:
    given = {"network": config or {"libvirt": {"networkName": "default"}}, **spec}
    return from_data({"metadata": meta("lan"), "spec": given}, VMNetworkAttachment)


def provider(type: str = "libvirt", **spec: Any) -> Provider:
    given = {"type": type, "endpoint": "https://lab", "credentialSecretRef": {"name": "lab"}, "runtime": {"image": "a/b:1"}, **spec}
    return from_data({"metadata": meta("lab"), "spec": given}, Provider)


def found(vm: VirtrigaudVirtualMachine, *others: Resource) -> MachineDependencies:
    """What a machine refers to: the usual objects, and others in their place."""
    usual: list[Resource] = [vmclass(), image(), network(), provider()]
    kept = [each for each in usual if not any(type(each) is type(other) for other in others)]
    return references.resolve(vm, ObjectSet([*kept, *others], complete=True))
