"""Objects as the target gets them: the machine halted and fenced, and what it refers to without the source's marks."""

from collections.abc import Iterable

from paddock.base import ownnames
from paddock.base.jsondata import Data, copied
from paddock.fleet import kinds
from paddock.fleet.moves.plan import record
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.meta.patch import apply_merge_patch
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.references import MACHINE

# Annotations about the object at its place, by their beginnings.
_LOCAL = (
    record.RECORD,
    record.FENCE,
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubevirt.io/latest-observed-api-version",
    "kubevirt.io/storage-observed-api-version",
    "meta.helm.sh/",
    ownnames.UNCONFIRMED_OWNER.name,
)
_SELECTOR = ("spec", "template", "spec", "nodeSelector")
# Fields of a Service that its cluster chooses.
_ADDRESSES = ("clusterIP", "clusterIPs", "healthCheckNodePort", "loadBalancerIP", "externalIPs", "ipFamilies", "ipFamilyPolicy")


def machine(data: Data, kind: KindId, moved: MoveRecord) -> Data:
    """Return the machine at the target: as it is, halted, with a fence and the id of its move."""
    made = {
        "apiVersion": data["apiVersion"],
        "kind": data["kind"],
        "metadata": metadata(data, moved),
        "spec": copied(data.get("spec") or {}),
    }
    made["metadata"].setdefault("annotations", {})[record.FENCE] = "its disks are being carried here"
    changed: Data = apply_merge_patch(made, kinds.adapter(kind).power_words.halted(data))
    if kind == MACHINE:
        changed = _with_macs(apply_merge_patch(changed, opened(data)), moved)
        for member in ("instancetype", "preference"):
            # The revision is an object of the source.
            (changed["spec"].get(member) or {}).pop("revisionName", None)
    elif (adapter := kinds.adapter(kind)).names_macs:
        _name_macs(fieldpath.value_at(changed, adapter.nics) or (), moved)
    return changed


def maker(vm: Data) -> str:
    """Return a text that names the program that maintains a VirtualMachine for an object of another API; empty if there is none."""
    return next((text for each in adapters.every() if (text := each.maker(vm))), "")


def released(moved: MoveRecord) -> Data:
    """Return the patch that takes the fence off and gives the wish about running back."""
    return joined(moved.power, {"metadata": {"annotations": {record.FENCE: None}}})


def restored(data: Data, kind: KindId, moved: MoveRecord) -> Data:
    """Return the patch that makes the source what it was before the move."""
    notes = joined(moved.power, {"metadata": {"annotations": {record.FENCE: None, record.RECORD: None}}})
    return joined(notes, opened(data)) if kind == MACHINE else notes


def fenced(data: Data, kind: KindId, moved: MoveRecord, reason: str, *, gated: bool = True) -> Data:
    """Return the patch that fences and halts a machine, with the record of its move."""
    notes = {record.FENCE: reason, record.RECORD: record.write(moved)}
    document = joined(kinds.adapter(kind).power_words.halted(data), {"metadata": {"annotations": notes}})
    return joined(document, CLOSED) if gated and kind == MACHINE else document


def opened(vm: Data) -> Data:
    """Return the patch that takes `CLOSED` back."""
    others = set(fieldpath.value_at(vm, _SELECTOR) or ()) - {record.FENCE}
    return _selecting({record.FENCE: None} if others else None)


def _selecting(value: Data | None) -> Data:
    return {"spec": {"template": {"spec": {"nodeSelector": value}}}}


# The patch that keeps a VirtualMachine from every node: no node has this label. A cluster knows no fence, and honours this.
CLOSED = _selecting({record.FENCE: "moved"})


def reference(data: Data, moved: MoveRecord) -> Data:
    """Return an object that the machine refers to, as the target gets it."""
    members = {name: value for name, value in data.items() if name not in ("metadata", "status")}
    if data.get("kind") == "Service":
        members["spec"] = _service(data.get("spec") or {})
    return {**members, "metadata": metadata(data, moved)}


def content(data: Data) -> Data:
    """Return what two objects of one name have to agree in."""
    members = {name: value for name, value in data.items() if name not in ("apiVersion", "kind", "metadata", "status") and value}
    if data.get("kind") == "Service":
        members["spec"] = _service(data.get("spec") or {})
    return members


def metadata(data: Data, moved: MoveRecord) -> Data:
    """Return the metadata of an object at the target."""
    found = data["metadata"]
    notes = {name: value for name, value in (found.get("annotations") or {}).items() if not name.startswith(_LOCAL)}
    made: Data = {"name": found["name"], "labels": {**(found.get("labels") or {}), record.ID: moved.id}}
    if found.get("namespace"):
        made["namespace"] = moved.namespace
    return {**made, "annotations": notes} if notes else made


def _service(spec: Data) -> Data:
    kept = {name: value for name, value in spec.items() if name not in _ADDRESSES}
    if kept.get("ports"):
        kept["ports"] = [{name: value for name, value in each.items() if name != "nodePort"} for each in kept["ports"]]
    return kept


def _with_macs(made: Data, moved: MoveRecord) -> Data:
    """Give interfaces the MAC addresses that they had without being named."""
    guest = made["spec"].setdefault("template", {}).setdefault("spec", {})
    devices = guest.setdefault("domain", {}).setdefault("devices", {})
    if moved.interfaces and not devices.get("interfaces"):
        devices["interfaces"], guest["networks"] = copied(moved.interfaces), copied(moved.networks)
    _name_macs(devices.get("interfaces") or (), moved)
    return made


def _name_macs(interfaces: Iterable[Data], moved: MoveRecord) -> None:
    for each in interfaces:
        if each.get("name") in moved.macs:
            each.setdefault("macAddress", moved.macs[each["name"]])


def joined(one: Data, two: Data) -> Data:
    """Join two merge patches; members that are to go stay named."""
    result = dict(one)
    for name, value in two.items():
        there = result.get(name)
        result[name] = joined(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return result
