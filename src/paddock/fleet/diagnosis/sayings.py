"""Everything that objects say is wrong or awaited, each saying with the place it was read from."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.links import POD
from paddock.fleet.diagnosis.scene import EventQuery, ObjectSnapshot, at, entries, texts
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubernetes.meta import ages
from paddock.kubevirt.plan.changes.references import CLAIM, DATA_VOLUME, INSTANCE, MACHINE
from paddock.kubevirt.plan.diagnosis import kinddiagnosis
from paddock.kubevirt.plan.instance import ends

# Conditions that are bad news when they do not hold ...
_GOOD = frozenset(
    (
        "AccessCredentialsSynchronized",
        "AgentConnected",
        "Bound",
        "CleanedUp",
        "CapabilitiesReported",
        "CloudInitFinished",
        "DataSourceResolved",
        "DataVolumesReady",
        "HotMemoryChange",
        "HotVCPUChange",
        "HypervisorVerified",
        "Initialized",
        "NetworkReady",
        "PVCReady",
        "Placement",
        "PodScheduled",
        "PostStart",
        "PreStop",
        "Progressing",
        "ProviderAvailable",
        "ProviderRuntimeReady",
        "Ready",
        "Running",
        "SourceDeleted",
        "StorageReady",
        "Synced",
        "Synchronized",
        "TLSConfigured",
        "VirtualMachineReady",
        "VolumesChange",
    )
)
# ... and those that are when they do.
_BAD = frozenset(
    (
        "AgentVersionNotSupported",
        "Conflicts",
        "DecentralizedLiveMigrationFailure",
        "Deleting",
        "DiskPressure",
        "Failure",
        "ManualRecoveryRequired",
        "MemoryPressure",
        "NeedsAttention",
        "NetworkLimited",
        "NetworkUnavailable",
        "Outdated",
        "Paused",
        "PIDPressure",
        "ReplicaFailure",
        "ReplicaPaused",
        "RestartRequired",
        "SimulatedGuest",
        "SoftwareEmulation",
        "Suspended",
        "Unsupported",
        "decentralizedMigrationBlocked",
    )
)
_MIGRATION = ("kubevirt.io", "VirtualMachineInstanceMigration")
# A move of volumes that a user stopped; the condition stays.
_CALLED_OFF = ("VolumesChange", "VolumesChangeCancellation")
# Normal events that tell of waiting.
_WAITING_EVENTS = frozenset(("FailedBinding", "ExternalProvisioning", "WaitForFirstConsumer", "WaitForPodScheduled"))
# Texts about an object's predecessor count for it, too, for so long.
_FRESH_SECONDS = 600.0
Kind = Literal["condition", "status", "event"]


class Statement(msgspec.Struct, frozen=True):
    """A statement by an object. `field` is its place; `type` is of a condition, or the kind of an event."""

    node: WalkNode
    field: str
    kind: Kind
    type: str
    status: str
    reason: str
    message: str
    since: float | None = None
    count: int = 1
    # said of an earlier object of the name
    former: bool = False

    @property
    def codes(self) -> tuple[str, ...]:
        """Its reason codes: the reason, and the end of a run that the sentence has."""
        return (self.reason, ends.code(self.message))

    @property
    def text(self) -> str:
        """Everything in it that may be matched. Some put sentences into the reason."""
        return f"{self.reason}: {self.message}" if self.message else self.reason


def of(scene: ObjectSnapshot, node: WalkNode) -> Iterator[Statement]:
    """Yield the statements of an object, and those about it."""
    if node.data is not None:
        yield from _conditions(node, node.data)
        yield from _status(node, node.data)
        if node.ref.id == POD:
            yield from _containers(node, node.data)
    # Of a run that is over the events are left.
    yield from _events(scene, node)


def _conditions(node: WalkNode, data: Data) -> Iterator[Statement]:
    name, entry = _at_provider(node, data)
    if name and len(at(data, "status", "providerStatus")) > 1:
        # Its conditions tell of the Provider where it stands worst, which need not be the machine's.
        if texts(entry, "reason"):
            yield Statement(
                node, f"status.providerStatus[{name}].message", "status", "", "", texts(entry, "reason"), texts(entry, "message")
            )
        return
    for each in entries(data, "status", "conditions"):
        name, status = texts(each, "type"), texts(each, "status")
        bad = status != "True" if name in _GOOD else status == "True" and name in _BAD
        if node.ref.id == POD and _is_told_above(node, each):
            continue
        if (
            not bad
            or (name, texts(each, "reason")) == _CALLED_OFF
            or (node.ref.id == DATA_VOLUME and name == "Running" and texts(each, "reason") == "Completed")
        ):
            continue
        since = ages.seconds_of(texts(each, "lastTransitionTime"))
        yield Statement(node, f"status.conditions[{name}]", "condition", name, status, texts(each, "reason"), texts(each, "message"), since)


def _is_told_above(pod: WalkNode, condition: Data) -> bool:
    """Return whether the instance of a launcher Pod says the same: nobody corrects the Pod, which may be a view of the instance."""
    above = entries(pod.above.data, "status", "conditions") if pod.above is not None else ()
    same = ("type", "status", "message")
    return any([texts(each, key) for key in same] == [texts(condition, key) for key in same] for each in above)


def _at_provider(node: WalkNode, data: Data) -> tuple[str, Data]:
    """Return what an image says of the Provider of the machine that needs it: the Provider's name in its status, and the entry."""
    machine = node.above
    if machine is None or not kinddiagnosis.of(node.ref.id).is_image or kinddiagnosis.of(machine.ref.id).polls is None:
        return "", {}
    name, place = texts(machine.data, "spec", "providerRef", "name"), texts(machine.data, "spec", "providerRef", "namespace")
    key = name if (place or machine.ref.namespace) == node.ref.namespace else f"{place or machine.ref.namespace}/{name}"
    found = at(data, "status", "providerStatus", key)
    return (key, found) if isinstance(found, dict) else ("", {})


def _status(node: WalkNode, data: Data) -> Iterator[Statement]:
    """Yield the statements that some kinds make in fields of their own."""

    def said(field: str, message: str, reason: str = "") -> Statement:
        return Statement(node, field, "status", "", "", reason, message)

    if message := texts(data, "status", "error", "message"):
        yield said("status.error.message", message)
    statement = kinddiagnosis.of(node.ref.id).statement
    if statement is not None and (own := statement(data)) is not None:
        yield said(*own)
    if node.ref.id == _MIGRATION and (message := texts(data, "status", "migrationState", "failureReason")):
        yield said("status.migrationState.failureReason", message, "FailedMigration")
    for index, each in enumerate(entries(data, "status", "volumeStatus")):
        if texts(each, "phase") in ("Pending", "MemoryDumpFailed") and texts(each, "message"):
            yield said(f"status.volumeStatus[{index}].message", texts(each, "message"), texts(each, "reason") or texts(each, "phase"))
    if node.ref.id == CLAIM and (message := verdict.filling(data).get("running.message", "")):
        field = "metadata.annotations[cdi.kubevirt.io/storage.condition.running.message]"
        yield said(field, message, verdict.filling(data).get("running.reason", ""))


def _containers(node: WalkNode, data: Data) -> Iterator[Statement]:
    for member in ("initContainerStatuses", "containerStatuses"):
        for index, each in enumerate(entries(data, "status", member)):
            for state in ("state", "lastState"):
                for how in ("waiting", "terminated"):
                    found: Any = at(each, state, how) or {}
                    if texts(found, "reason") not in ("", "Completed", "ContainerCreating", "PodInitializing"):
                        field = f"status.{member}[{index}].{state}.{how}"
                        yield Statement(node, field, "status", how, "", texts(found, "reason"), texts(found, "message"))


def _events(scene: ObjectSnapshot, node: WalkNode) -> Iterator[Statement]:
    made = ages.seconds_of(texts(node.data, "metadata", "creationTimestamp")) or 0.0
    present, settled = _present(node), _settled(scene, node)
    for each in scene.events.get(EventQuery(node.ref.namespace, node.ref.name), ()):
        about = each.get("involvedObject") or each.get("regarding") or {}
        if texts(about, "kind") != node.ref.kind or not _of_group(texts(about, "apiVersion"), node.ref.group):
            continue
        weight, reason = texts(each, "type"), texts(each, "reason")
        if weight != "Warning" and reason not in _WAITING_EVENTS:
            continue
        message = texts(each, "message") or texts(each, "note")
        last = texts(each, "lastTimestamp") or texts(each, "series", "lastObservedTime") or texts(each, "eventTime")
        since = ages.seconds_of(last)
        if since is not None and since < made and scene.now - since > _FRESH_SECONDS:
            # The text is about one that had the name before.
            continue
        count = int(each.get("count") or at(each, "series", "count") or 1)
        uid = texts(about, "uid")
        former = bool(present and uid and uid not in present) or (since is not None and since < settled)
        yield Statement(node, f"event {reason}", "event", weight, "", reason, message, since, count, former)


def _settled(scene: ObjectSnapshot, node: WalkNode) -> float:
    """Since when an object is as it should be: earlier texts are over."""
    if node.data is None or verdict.of(node.ref, node.data).state != "good":
        return 0.0
    ready = [each for each in entries(node.data, "status", "conditions") if texts(each, "type") == "Ready"]
    return next((since for each in ready if (since := ages.seconds_of(texts(each, "lastTransitionTime")))), scene.now)


def _present(node: WalkNode) -> tuple[str, ...]:
    """The UIDs whose events are about the object as it is now; nothing where none is known, and all events count.

    A machine that cannot be started has an instance for each attempt, or none between two: the last one that failed says why.
    """
    own = texts(node.data, "metadata", "uid")
    failed = ""
    if node.ref.id == INSTANCE and node.above is not None and node.above.ref.id == MACHINE:
        failed = texts(node.above.data, "status", "startFailure", "lastFailedVMIUID")
    return tuple(each for each in (own, failed) if each)


def _of_group(api_version: str, group: str) -> bool:
    return api_version.rpartition("/")[0] == group
