"""The amounts that an object uses of a quota. Pure."""

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.quotas import usage
from paddock.kubernetes.quotas.usage import Traits

Amounts = dict[str, int]
SERVICES, CLAIMS, PODS = "services", "persistentvolumeclaims", "pods"
INSTANCES = "virtualmachineinstances.kubevirt.io"
DEVICES = "resourceclaims.resource.k8s.io"
# Those whose objects take processors and memory.
COMPUTING = (PODS, INSTANCES)
REQUESTED = "requests.storage"
_CLASS = ".storageclass.storage.k8s.io/"
_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_ALL_DEVICES = 32
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
# Counted under their own name besides `count/NAME`.
_PLAIN = frozenset(("configmaps", "secrets", "resourcequotas", "replicationcontrollers", SERVICES, CLAIMS))
# Never counted: what watches a namespace must not fill it.
IGNORED = frozenset(("events",))


class ObjectUsage(msgspec.Struct, frozen=True):
    """The amounts that an object uses, and the properties that scopes look at: those of a Pod, or the classes of a claim's attributes."""

    amounts: Amounts
    traits: Traits | None = None
    classes: frozenset[str] | None = None


def is_weighed(collection: str) -> bool:
    """Return whether the amounts of an object depend on its content. All other collections are only counted."""
    return collection in (SERVICES, CLAIMS, DEVICES, *COMPUTING)


def counted(collection: str) -> Amounts:
    """Return the amounts of any object of a collection, in billionths."""
    names = (f"count/{collection}", collection) if collection in _PLAIN else (f"count/{collection}",)
    return dict.fromkeys(names, quantity.UNIT)


def measured(collection: str, data: Data, *, launchers: bool = True) -> ObjectUsage:
    """Measure an object. `launchers`: instances stand for their launcher Pods, which nobody else makes."""
    amounts = counted(collection)
    if collection == SERVICES:
        amounts.update(_service(data.get("spec") or {}))
    elif collection == CLAIMS:
        amounts.update(_claim(data))
        return ObjectUsage(amounts, classes=_classes(data))
    elif collection == DEVICES:
        amounts.update(_devices(data.get("spec") or {}))
    elif collection == PODS:
        amounts.update(usage.of_pod(data))
        return ObjectUsage(amounts, usage.pod_traits(data))
    elif collection == INSTANCES and launchers and usage.has_launcher(data):
        amounts.update(usage.of_instance(data))
        return ObjectUsage(amounts, usage.instance_traits(data))
    return ObjectUsage(amounts)


def _classes(claim: Data) -> frozenset[str]:
    status = claim.get("status") or {}
    named = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return frozenset(each for each in named if each)


def _service(spec: Data) -> Amounts:
    ports = spec.get("ports") or ()
    kind = spec.get("type")
    nodes = 0
    if kind == "NodePort":
        nodes = len(ports)
    elif kind == "LoadBalancer":
        suppressed = spec.get("allocateLoadBalancerNodePorts") is False
        nodes = sum(1 for port in ports if port.get("nodePort")) if suppressed else len(ports)
    return {"services.nodeports": nodes * quantity.UNIT, "services.loadbalancers": quantity.UNIT if kind == "LoadBalancer" else 0}


def _claim(data: Data) -> Amounts:
    spec = data.get("spec") or {}
    named = (data["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION) or spec.get("storageClassName") or ""
    amounts = {f"{named}{_CLASS}{CLAIMS}": quantity.UNIT} if named else {}
    size = max(requested(data), default=None)
    if size is not None:
        amounts[REQUESTED] = size
        if named:
            amounts[f"{named}{_CLASS}{REQUESTED}"] = size
    return amounts


def _devices(spec: Data) -> Amounts:
    """Count the devices of each class; of alternatives the most that may be given, of `All` the most that any claim gets."""
    amounts: Amounts = {}
    for request in (spec.get("devices") or {}).get("requests") or ():
        worst: Amounts = {}
        for each in request.get("firstAvailable") or (request.get("exactly") or {},):
            count = _ALL_DEVICES if each.get("allocationMode") == "All" else each.get("count") or 0
            name = f"{each.get('deviceClassName', '')}{_DEVICE_CLASS}"
            worst[name] = max(worst.get(name, 0), count * quantity.UNIT)
        for name, amount in worst.items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts


def requested(data: Data) -> list[int]:
    """The sizes that a claim asks for, and has been promised, in whole bytes."""
    asked = ((data.get("spec") or {}).get("resources") or {}).get("requests") or {}
    promised = (data.get("status") or {}).get("allocatedResources") or {}
    texts = [each["storage"] for each in (asked, promised) if each.get("storage") is not None]
    return [quantity.whole(text) * quantity.UNIT for text in texts if quantity.is_quantity(text)]


def is_binary(name: str) -> bool:
    """Return whether an amount is bytes, and so written in powers of two."""
    if name.endswith(_CLASS + REQUESTED):
        return True
    base = name.removeprefix("requests.").removeprefix("limits.").removesuffix("/vmi")
    return base in ("memory", "storage") or base.startswith("hugepages-")


def text(name: str, amount: int) -> str:
    """An amount as a status and a message show it."""
    return quantity.canonical(amount, in_binary=is_binary(name))
