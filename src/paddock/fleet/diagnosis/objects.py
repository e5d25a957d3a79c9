"""Causes that any object can have: what it names is not there, somebody holds it, it was refused, nobody looks after it."""

from collections.abc import Iterator, Mapping

import msgspec

from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.links import (
    PRIORITY,
    SERVICE_ACCOUNT,
    STORAGE_CLASS,
    VOLUME_SNAPSHOT,
)
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, Look, RuleView
from paddock.fleet.diagnosis.scene import at, texts
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubernetes.meta import ages
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import (
    ATTACHMENT,
    CLAIM,
    CONFIG_MAP,
    DATA_SOURCE,
    DATA_VOLUME,
    IMAGE,
    MACHINE,
    SECRET,
    SNAPSHOT,
)
from paddock.kubevirt.plan.diagnosis import kinddiagnosis

_YOUNG_SECONDS = 30.0
# Finalizers that are ours, or of the backends, by what takes them off; others are somebody's.
_OURS = (
    "kubevirt.io/",
    "snapshot.kubevirt.io/",
    "pool.kubevirt.io/",
    "cdi.kubevirt.io/",
    *(each for known in kinddiagnosis.every() for each in known.finalizers),
)
_KUBERNETES = ("kubernetes.io/", "foregroundDeletion", "orphan", "kubernetes")
# kind -> (rule, what people call it, how to look for those that exist)
_MISSING: dict[KindId, tuple[str, str, str]] = {
    SECRET: ("secret-missing", "Secret", "secrets"),
    CONFIG_MAP: ("configmap-missing", "ConfigMap", "configmaps"),
    SERVICE_ACCOUNT: ("serviceaccount-missing", "ServiceAccount", "serviceaccounts"),
    DATA_SOURCE: ("datasource-missing", "DataSource", "datasources"),
    DATA_VOLUME: ("disk-missing", "Disk", "datavolumes,pvc"),
    CLAIM: ("disk-missing", "PersistentVolumeClaim", "pvc"),
    VOLUME_SNAPSHOT: ("snapshot-missing", "VolumeSnapshot", "volumesnapshots"),
    SNAPSHOT: ("snapshot-missing", "VirtualMachineSnapshot", "vmsnapshots"),
    STORAGE_CLASS: ("storageclass-missing", "Storage class", "storageclasses"),
    PRIORITY: ("priorityclass-missing", "PriorityClass", "priorityclasses"),
    ATTACHMENT: ("network-missing", "NetworkAttachmentDefinition", "network-attachment-definitions"),
    MACHINE: ("machine-missing", "VirtualMachine", "vm"),
    IMAGE: ("datasource-missing", "Image", "images.virtualization.k8c.io"),
    **{kind: each.missing[:3] for kind, each in kinddiagnosis.items() if each.missing is not None},
    **{
        ("instancetype.kubevirt.io", kind): ("instancetype-missing", kind, "vminstancetypes,vmclusterinstancetypes")
        for kind in ("VirtualMachineInstancetype", "VirtualMachineClusterInstancetype")
    },
    **{
        ("instancetype.kubevirt.io", kind): ("preference-missing", kind, "vmpreferences,vmclusterpreferences")
        for kind in ("VirtualMachinePreference", "VirtualMachineClusterPreference")
    },
}


def _missing(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """Yield a diagnosis for each named or used object that does not exist."""
    for node in view.nodes:
        known = _MISSING.get(node.ref.id)
        if known is None or known[0] != rule.id or node.above is None or node.how == "made" or not view.scene.is_missing(node.ref):
            continue
        if node.ref.id == node.above.ref.id == DATA_SOURCE and node.ref.namespace != node.above.ref.namespace:
            # Nobody follows it, whether it is there or not.
            continue
        where = f" in namespace {node.ref.namespace}" if node.ref.namespace else ""
        cause = f"{known[1]} {node.ref.name} does not exist{where}."
        listed = f"paddock get {known[2]}" + (f" -n {node.ref.namespace}" if node.ref.namespace else "")
        own = kinddiagnosis.of(node.ref.id).missing
        known_ones = own.built_in if own is not None else ""
        fix = f"Make it, or correct {node.path} of {node.above.ref} (those that exist: {known_ones}{listed})."
        yield rule.found(node, cause, fix=fix, seen=Evidence(node.path, node.ref.name))


def _held(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """An object that is being deleted and waits for somebody to let it go."""
    for node in view.nodes:
        gone = ages.seconds_of(texts(node.data, "metadata", "deletionTimestamp"))
        listed = at(node.data, "metadata", "finalizers") or []
        foreign = [each for each in listed if not each.startswith(_OURS) and each not in _KUBERNETES and not each.startswith(_KUBERNETES)]
        if gone is None or not foreign or (gone > view.scene.now and len(foreign) < len(listed)):
            continue
        cause = f"{node.ref} is being deleted, and waits for whoever put {foreign[0]} on it."
        index = listed.index(foreign[0])
        fix = (
            f"See that the program behind {foreign[0]} runs. If it never comes back: kubectl patch {_resource(node)} {node.ref.name}"
            f"{f' -n {node.ref.namespace}' if node.ref.namespace else ''} --type json"
            f' -p \'[{{"op":"remove","path":"/metadata/finalizers/{index}"}}]\''
        )
        yield rule.found(node, cause, fix=fix, seen=Evidence(f"metadata.finalizers[{index}]", foreign[0], gone))


def _resource(node: WalkNode) -> str:
    return node.ref.kind.lower() + (f".{node.ref.group}" if node.ref.group else "")


def _deleting(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    node = view.start
    gone = ages.seconds_of(texts(node.data, "metadata", "deletionTimestamp"))
    if gone is not None:
        listed = at(node.data, "metadata", "finalizers") or ()
        cause = f"{node.ref} is being deleted; what belongs to it is cleared away first."
        yield rule.found(node, cause, rank=CauseDepth.VAGUE, seen=Evidence("metadata.finalizers", ", ".join(listed), gone))


def _ignored(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """An object that nobody has said anything about."""
    node = view.start
    made = ages.seconds_of(texts(node.data, "metadata", "creationTimestamp"))
    if node.data is None or made is None or at(node.data, "status") or verdict.of(node.ref, node.data).state != "waits":
        return
    if view.scene.now - made < _YOUNG_SECONDS:
        return
    cause = f"No program has looked at {node.ref} since it was made."
    yield rule.found(node, cause, rank=CauseDepth.SAID, seen=Evidence("status", "(empty)", made))


def _blind(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """Yield a diagnosis when objects that would explain more are not readable."""
    if view.scene.blind and verdict.is_open(view.start.ref, view.start.data or {}):
        asked, why = next(iter(sorted(view.scene.blind.items(), key=str)))
        kinds = sorted({_kind(each) for each in view.scene.blind})
        node = next((each for each in view.nodes if each.ref == asked), view.start)
        cause = f"What stands behind {view.start.ref} could not be read: {', '.join(kinds)}."
        yield rule.found(node, cause, rank=CauseDepth.VAGUE, seen=Evidence("", why))


def _kind(asked: object) -> str:
    return str(getattr(asked, "kind", "Event"))


def _vague(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """The words of the object itself, where no rule knows better: the newest complaint of the one that is farthest."""
    for saying in view.sayings:
        node, matters = saying.node, verdict.is_open(saying.node.ref, saying.node.data or {}) or saying.node is view.start
        # Some put the sentence into the reason.
        member, words = ("message", saying.message) if saying.message or " " not in saying.reason else ("reason", saying.reason)
        if matters and words and saying.kind != "event":
            field = f"{saying.field}.{member}" if saying.kind == "condition" else saying.field
            events = f" -n {node.ref.namespace}" if node.ref.namespace else " -A"
            place = node.ref.name + (events if node.ref.namespace else "")
            shown = f"paddock get {_resource(node)} {place} -o yaml, paddock events{events}"
            fix = f"Do what the message says. More: {shown}; and in the server's log."
            found = rule.found(
                node, f"{node.ref} says: {words}", fix=fix, rank=CauseDepth.UNKNOWN, seen=Evidence(field, words, saying.since)
            )
            waits = verdict.of(node.ref, node.data or {}).state == "waits"
            yield msgspec.structs.replace(found, mood="waits", fix=_WAIT) if waits else found


_WAIT = "Wait; ask again in a minute or two."

LOOKS: Mapping[str, Look] = {
    **dict.fromkeys((rule for rule, _, _ in _MISSING.values()), _missing),
    "finalizer-held": _held,
    "being-deleted": _deleting,
    "nobody-cares": _ignored,
    "cannot-look": _blind,
    "said-by-object": _vague,
}
