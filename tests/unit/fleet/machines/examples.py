"""Objects of machines, as a server holds them."""

from typing import Any

Data = dict[str, Any]


def vm(name: str = "web", *, uid: str = "", namespace: str = "default", owner: Data | None = None, **spec: Any) -> Data:
    """A VirtualMachine."""
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"vm-{name}"}
    if owner is not None:
        metadata["ownerReferences"] = [  # type: ignore[assignment]
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        ]
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": {"runStrategy": "Always", **spec}}


def vmi(name: str = "web", **status: Any) -> Data:
    """A VirtualMachineInstance."""
    metadata = {"name": name, "namespace": "default", "uid": f"vmi-{name}"}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": metadata, "spec": {}, "status": status}


def stakater(name: str = "web", **parameters: Any) -> Data:
    """Stakater's VirtualMachine."""
    return {
        "apiVersion": "infrastructure.stakater.com/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "default", "uid": f"stakater-{name}"},
        "spec": {"parameters": parameters},
    }


def virtrigaud(name: str = "db", *, power: str | None = None, provider: Data | None = None, id: str = "") -> Data:
    """VirtRigaud's VirtualMachine."""
    status: Data = {"id": id} if id else {}
    if provider is not None:
        status["provider"] = provider
    return {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "default", "uid": f"virtrigaud-{name}"},
        "spec": {"providerRef": {"name": "esx"}, **({"powerState": power} if power else {})},
        "status": status,
    }


def vitistack(name: str = "node", *, vm_name: str = "", **annotations: str) -> Data:
    """Vitistack's Machine."""
    return {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "uid": f"vitistack-{name}", "annotations": annotations},
        "spec": {},
        "status": {"vmName": vm_name} if vm_name else {},
    }
