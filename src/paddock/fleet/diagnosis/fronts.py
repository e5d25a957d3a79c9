"""Causes that Stakater's, Vitistack's and Kubermatic's objects tell in words of their own (their specs' reasons)."""

from collections.abc import Iterator, Mapping

from paddock.base.jsondata import Data
from paddock.fleet import kinds
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.sayings import Statement
from paddock.fleet.diagnosis.scene import ObjectPlace, at, entries, texts
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubevirt.plan.changes.references import ATTACHMENT, DATA_SOURCE, MACHINE
from paddock.kubevirt.plan.diagnosis import kinddiagnosis


def _secret_elsewhere(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A Secret of a DataSource is looked for where the disk is, and stays where it is."""
    for node in view.nodes:
        if node.ref.id != DATA_SOURCE or node.above is None or node.above.ref.namespace == node.ref.namespace:
            continue
        for member in at(node.data, "spec", "source") or ():
            secret = texts(node.data, "spec", "source", member, "secretRef")
            if secret and any(f"Secret {node.above.ref.namespace}/{secret} " in each.message for each in view.sayings):
                cause = (
                    f"DataSource {node.ref.name} needs Secret {secret}, and is in another namespace ({node.ref.namespace}) than the disk."
                )
                yield rule.found(node, cause, seen=Evidence(f"spec.source.{member}.secretRef", secret))


def _undefined(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A network that machines use, without the definition that they are attached by."""
    for node in view.nodes:
        above = node.above
        if (
            node.ref.id != ATTACHMENT
            or above is None
            or not kinddiagnosis.of(above.ref.id).is_network
            or not view.scene.is_missing(node.ref)
        ):
            continue
        if used := at(above.data, "status", "connectedMachines"):
            cause = f"The definition (NetworkAttachmentDefinition {node.ref.name}) that machines are attached by is not there."
            yield rule.found(above, cause, rank=CauseDepth.SAID, seen=Evidence("status.connectedMachines", ", ".join(map(str, used))))


def _taken(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """Two objects in front of one machine: both have its name, and it belongs to one of them."""
    for node in view.nodes:
        above = node.above
        if node.ref.id != MACHINE or node.data is None or above is None or not kinddiagnosis.of(above.ref.id).is_namesake:
            continue
        owner = next((_owner(node, each) for each in entries(node.data, "metadata", "ownerReferences") if each.get("controller")), None)
        if owner == above.ref or (owner is None and not any(_says_conflict(each, above) for each in view.sayings)):
            continue
        whose = f"belongs to {owner}" if owner is not None else "was made by somebody else"
        cause = f"{above.ref} needs a VirtualMachine {node.ref.name}, which exists already and {whose}."
        other = owner or node.ref
        place = f"{KINDS.get(other.id, other.kind.lower())}.{other.group} {other.name} -n {other.namespace}"
        fix = f"Give one of them another metadata.name; or delete the other, if nobody needs it: paddock delete {place}"
        yield rule.found(above, cause, fix=fix, seen=Evidence("metadata.name", above.ref.name))


def _owner(node: WalkNode, reference: Data) -> ObjectPlace:
    group = texts(reference, "apiVersion").rpartition("/")[0]
    return ObjectPlace(group, texts(reference, "kind"), node.ref.namespace, texts(reference, "name"))


def _says_conflict(saying: Statement, front: WalkNode) -> bool:
    return saying.node is front and ("NameConflict" in saying.reason or "it exists" in saying.message)


# What kubectl calls the kinds that may own a machine.
KINDS = {
    (each.group, each.kind): each.plural
    for each in kinds.MACHINES
    if each is kinds.VM or kinddiagnosis.of((each.group, each.kind)).is_namesake
}


LOOKS: Mapping[str, Look] = {
    "name-conflict": _taken,
    "network-undefined": _undefined,
    "datasource-secret-elsewhere": _secret_elsewhere,
}
