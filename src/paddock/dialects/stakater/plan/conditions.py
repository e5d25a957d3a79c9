"""The values of a machine's conditions, and what blocks an apply, in the order of docs/spec/stakater.md 4.1.

What the generated machine has been given already is not waited for again: a Secret that was deleted since is no reason to hold back
a change of something else.
"""

from collections.abc import Callable, Mapping

import msgspec

from paddock.base import quantity
from paddock.dialects.stakater.kinds import effective
from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.plan.objects import BoundMachine
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.plan.machine.printable import condition

SYNCED, READY = "Synced", "Ready"


class ConditionValue(msgspec.Struct, frozen=True):
    """One condition without its type and time."""

    status: str
    reason: str
    message: str = ""

    def condition(self, type: str) -> Condition:
        """As it stands in a status."""
        return Condition(type=type, status=self.status, reason=self.reason, message=self.message or None)


def no(reason: str, message: str = "") -> ConditionValue:
    """It does not hold."""
    return ConditionValue("False", reason, message)


def creating(step: str) -> ConditionValue:
    """Not ready yet: the step that is under way."""
    return no("Creating", step)


SUCCESS = ConditionValue("True", "ReconcileSuccess")
AVAILABLE = ConditionValue("True", "Available")
PAUSED = no("ReconcilePaused", 'the annotation crossplane.io/paused is "true": nothing is written until it is removed')


class ApplyBlocker(msgspec.Struct, frozen=True):
    """The reason why nothing is applied at the moment. A wait that is no error leaves open whether the machine is in sync."""

    synced: ConditionValue
    # None: the machine is as ready as it is
    ready: ConditionValue | None = None


def waiting(reason: str, message: str) -> ApplyBlocker:
    """Something outside has to come first."""
    return ApplyBlocker(ConditionValue("Unknown", reason, message), no(reason, message))


# --- what blocks an apply ---------------------------------------------------------------------------------------------------


class ReferencedObjects(msgspec.Struct, frozen=True):
    """The objects that the machine refers to, as far as they exist."""

    object_set: ObjectSet
    # whether a Secret is there, by namespace and name; what is in it is nobody's business here
    has_secret: Callable[[str, str], bool]
    # what is set aside for the filesystem of a claim of this class
    overhead: Callable[[str], str]
    # whether the backend has networks by definitions at all
    has_definitions: bool = True


def blocker(
    vm: StakaterVirtualMachine, bound: BoundMachine, machine: kubevirt.VirtualMachine | None, sources: ReferencedObjects
) -> ApplyBlocker | None:
    """The first thing that is missing."""
    if machine is None:
        found = _data_source(vm, sources)
        if found is not None:
            return found
    return _key_secret(vm, machine, sources) or _networks(vm, machine, sources) or _bindings(bound)


def _data_source(vm: StakaterVirtualMachine, sources: ReferencedObjects) -> ApplyBlocker | None:
    """The root disk is made once, so the image is checked once."""
    given = vm.spec.parameters.dataSource
    place = f"{given.namespace}/{given.name}"
    found = sources.object_set.get(DataSource, given.namespace, given.name)
    if found is None:
        return waiting("DataSourceNotFound", f"there is no DataSource {place}; make it, or name another in spec.parameters.dataSource")
    ready = condition((found.status.conditions if found.status is not None else None) or (), "Ready")
    if ready is None or ready.status != "True":
        why = (ready.message or ready.reason) if ready is not None else "it says nothing yet"
        return waiting("DataSourceNotReady", f"the DataSource {place} is not ready: {why}")
    return _too_small(vm, found, sources)


def _too_small(vm: StakaterVirtualMachine, source: DataSource, sources: ReferencedObjects) -> ApplyBlocker | None:
    """The commonest error of a copy, told before it is made."""
    content = (source.status.source if source.status is not None else None) or source.spec.source
    if content.pvc is None:
        return None
    claim = sources.object_set.get(PersistentVolumeClaim, content.pvc.namespace, content.pvc.name)
    size = vm.spec.parameters.storage.size
    if claim is None or quantity.whole(size) >= (image := _guest_size(claim, sources)):
        return None
    text = f"storage.size {size} is smaller than the image's {quantity.binary(image)}"
    return ApplyBlocker(no("ReconcileError", f"{text}; make spec.parameters.storage.size at least that"), creating(text))


def _guest_size(claim: PersistentVolumeClaim, sources: ReferencedObjects) -> int:
    """Return the size of the image for a guest: a claim with a filesystem asks for more than that."""
    size, request = claimsizes.guest_size(claim), claimsizes.request_of(claim)
    spec = claim.spec or PersistentVolumeClaimSpec()
    if size != request or spec.volumeMode == "Block":
        return size
    return claimsizes.usable(request, sources.overhead(spec.storageClassName or ""))


def _key_secret(vm: StakaterVirtualMachine, machine: kubevirt.VirtualMachine | None, sources: ReferencedObjects) -> ApplyBlocker | None:
    name, namespace = vm.spec.parameters.sshPublicKey.secretName, namespace_of(vm)
    if name is None or name in _secrets_of(machine) or sources.has_secret(namespace, name):
        return None
    return waiting("SSHKeySecretNotFound", f"there is no Secret {namespace}/{name} with the SSH public keys")


def _secrets_of(machine: kubevirt.VirtualMachine | None) -> set[str]:
    given = machine.spec.template.spec.accessCredentials or () if machine is not None else ()
    keys = (each.sshPublicKey for each in given)
    return {key.source.secret.secretName for key in keys if key is not None and key.source.secret is not None}


def _networks(vm: StakaterVirtualMachine, machine: kubevirt.VirtualMachine | None, sources: ReferencedObjects) -> ApplyBlocker | None:
    has = {
        each.multus.networkName
        for each in (machine.spec.template.spec.networks or () if machine is not None else ())
        if each.multus is not None
    }
    for network in effective.networks(vm.spec.parameters.networks):
        name = network.multus.networkName if network.multus is not None else None
        if not name or name in has:
            continue
        place, _, own = name.rpartition("/")
        place = place or namespace_of(vm)
        if sources.object_set.get(NetworkAttachmentDefinition, place, own) is None:
            text = f"there is no NetworkAttachmentDefinition {place}/{own} for the network {network.name}"
            more = "" if sources.has_definitions else "; the cluster does not know the kind, Multus is not installed"
            return waiting("NetworkNotFound", text + more)
    return None


def _bindings(bound: BoundMachine) -> ApplyBlocker | None:
    if not bound.missing:
        return None
    names: Mapping[str, str] = dict(bound.missing)
    cards = ", ".join(f"{plugin} of the network {network}" for network, plugin in names.items())
    text = f"the network binding {cards} is not registered in the KubeVirt object, and STAKATER_BINDING_FALLBACK is fail"
    return waiting("BindingUnavailable", f"{text}; register it, and before KubeVirt 1.5 enable the feature gate NetworkBindingPlugins")
