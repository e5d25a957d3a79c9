"""A machine with everything that it refers to: the start of each translation to KubeVirt.

References are looked up in the world. In a complete world a missing object is an error; in an incomplete one the object may
be somewhere else, so the translation goes on and says what it does instead.
"""

from collections.abc import Iterator

import msgspec

from paddock.dialects.vitistack.kinds import boot, machineclass, machinetemplate, ownform, templates
from paddock.dialects.vitistack.kinds.effective import Effective, effective
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.marks import CLUSTER_NAME, DEFAULT_CLASS, MACHINE, MACHINE_TEMPLATE, MANAGED_BY, OPERATOR
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.kinds.ownfields import PROVIDER
from paddock.dialects.vitistack.translate import documents
from paddock.dialects.vitistack.translate.errors import (
    IncompleteMachine,
    MachineClassNotFound,
    NetworkConfigurationNotFound,
    StorageClassNotFound,
    TemplateNotFound,
    UntranslatableMachine,
)
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.storageclass import StorageClass, default_class
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path

_OWN_NETWORK: Path = ("spec", "network", "networkNamespaceName")


class VitistackInputs(msgspec.Struct, frozen=True):
    """The inputs of the translation; `unmet` are the missing objects, in the order of the search."""

    machine: Machine
    rendering: Rendering
    effective: Effective
    # by the name a machine gives; None: left to the cluster
    classes: dict[str, str | None]
    networks: tuple[NetworkConfiguration | None, ...]
    # what the Secret of the user data holds, which may be network data, too
    secret: Secret | None
    # the documents that are referred to, by the key under which KubeVirt reads them; None: not there
    documents: dict[str, bytes | None]
    unmet: tuple[UntranslatableMachine, ...]

    @property
    def name(self) -> str:
        """The name of the machine and of its VirtualMachine."""
        return self.machine.metadata.name

    @property
    def carried_labels(self) -> dict[str, str]:
        """The labels by which users find what belongs to a machine, down to its pod."""
        given = self.machine.metadata.labels or {}
        labels = {MACHINE: self.name}
        if CLUSTER_NAME in given:
            labels[CLUSTER_NAME] = given[CLUSTER_NAME]
        if self.machine.spec.template:
            labels[MACHINE_TEMPLATE] = self.machine.spec.template
        return labels

    @property
    def labels(self) -> dict[str, str]:
        """The labels of what belongs to the machine."""
        return {MANAGED_BY: OPERATOR, **self.carried_labels}

    def metadata(self, name: str, annotations: dict[str, str] | None = None) -> ObjectMeta:
        """Metadata of an object that belongs to the machine."""
        return ObjectMeta(
            name=name,
            namespace=self.machine.metadata.namespace,
            labels=self.labels,
            annotations=annotations or None,
            ownerReferences=owned_by(self.machine),
        )


def resolve(machine: Machine, object_set: ObjectSet, rendering: Rendering) -> VitistackInputs:
    """Look everything up. Raises `TemplateNotFound` and `IncompleteMachine`: without a size there is nothing to translate."""
    machine = expanded(machine, object_set)
    spec, namespace = machine.spec, namespace_of(machine)
    base = machinetemplate.find(spec.template, namespace, object_set) if spec.template else None
    if spec.template and base is None:
        raise TemplateNotFound(spec.template, templates.choices())
    merged = effective(spec.resources, spec.disks, base)
    _demand_sizes(machine, merged)
    networks = tuple(object_set.get(NetworkConfiguration, namespace, network.networkName) for network in spec.networks)
    classes, unmet_classes = _classes(machine, merged, object_set, rendering)
    found = {each.kubevirt_key: each.value(object_set, namespace) for each in documents.references(spec.cloudInit)}
    unmet = [*_unmet_networks(machine, networks), *unmet_classes, *_unmet_documents(machine, object_set)]
    return VitistackInputs(machine, rendering, merged, classes, networks, _secret(machine, object_set), found, tuple(unmet))


def expanded(machine: Machine, object_set: ObjectSet) -> Machine:
    """The machine in the document's form. Raises `MachineClassNotFound`: without a class there is no size."""
    spec = machine.spec
    if not ownform.is_own(spec):
        return machine
    if not spec.machineClass:
        return ownform.documented(machine, machineclass.NO_CLASS)
    name, found = spec.machineClass, machineclass.find(spec.machineClass, object_set)
    if found is None:
        raise MachineClassNotFound(name, "not found", "create it", machineclass.choices())
    if not found.enabled:
        remedy = "create it with enabled: true" if found is machineclass.BUILT_IN.get(name) else "enable it"
        raise MachineClassNotFound(name, "is not enabled", remedy, machineclass.choices())
    if found.machineProviders and PROVIDER not in found.machineProviders:
        why = f"is for the providers {', '.join(found.machineProviders)}"
        raise MachineClassNotFound(name, why, f"add {PROVIDER} to them", machineclass.choices())
    return ownform.documented(machine, found)


def unmet(machine: Machine, object_set: ObjectSet, rendering: Rendering) -> tuple[UntranslatableMachine, ...]:
    """Everything that keeps a machine from being translated when the world is all there is."""
    try:
        return resolve(machine, object_set, rendering).unmet
    except UntranslatableMachine as error:
        return (error,)


def _demand_sizes(machine: Machine, merged: Effective) -> None:
    if merged.memory is None:
        raise IncompleteMachine("the machine has no memory size", ("spec", "resources", "memory", "size"))
    for index, disk in enumerate(machine.spec.disks):
        size = next((each.size for each in merged.disks if each.name == disk.name), None)
        if size is None:
            raise IncompleteMachine(f'disk "{disk.name}" has no size', ("spec", "disks", index, "size"))


def _unmet_networks(machine: Machine, networks: tuple[NetworkConfiguration | None, ...]) -> Iterator[UntranslatableMachine]:
    for index, (network, found) in enumerate(zip(machine.spec.networks, networks, strict=True)):
        if found is None:
            path = ("spec", "networks", index, "networkName") if machine.spec.provider is None else _OWN_NETWORK
            yield NetworkConfigurationNotFound(network.networkName, path, namespace_of(machine))


def _classes(
    machine: Machine, merged: Effective, object_set: ObjectSet, rendering: Rendering
) -> tuple[dict[str, str | None], list[StorageClassNotFound]]:
    """The StorageClass of each name that the machine uses, and those that are not there."""
    known = {each.metadata.name for each in object_set.all(StorageClass)}
    found: dict[str, str | None] = {}
    missing = []
    wanted = [disk.storageClass for disk in merged.disks]
    if boot.iso_url(machine):
        wanted.append(DEFAULT_CLASS)
    for name in dict.fromkeys(wanted):
        found[name] = default_storage_class(object_set, rendering) if name == DEFAULT_CLASS else name
        if found[name] not in known:
            missing.append(StorageClassNotFound(found[name] or name, _where(machine, merged, name), is_default=found[name] is None))
    return found, missing if object_set.complete else []


def default_storage_class(object_set: ObjectSet, rendering: Rendering) -> str | None:
    """Return the meaning of `default`: a class of that name, the installation's setting, or the class that is marked as the default."""
    classes = list(object_set.all(StorageClass))
    if any(each.metadata.name == DEFAULT_CLASS for each in classes):
        return DEFAULT_CLASS
    marked = default_class(classes)
    return rendering.default_storage_class or (marked.metadata.name if marked else None)


def _where(machine: Machine, merged: Effective, name: str) -> Path:
    """The place where a user can change a class: the disk's entry, or the list when the template gives it."""
    disks = [disk.name for disk in merged.disks if disk.storageClass == name]
    if machine.spec.provider is not None:
        return ("spec", "disks")
    for index, disk in enumerate(machine.spec.disks):
        if disk.name in disks:
            return ("spec", "disks", index, "storageClass")
    return ("spec", "disks")


def _secret(machine: Machine, object_set: ObjectSet) -> Secret | None:
    """The Secret of the document's form; None when there is none, and when user data in the machine wins."""
    cloud_init = machine.spec.cloudInit
    if cloud_init is None or cloud_init.userData or cloud_init.secretRef is None:
        return None
    return object_set.get(Secret, namespace_of(machine), cloud_init.secretRef.name)


def _unmet_documents(machine: Machine, object_set: ObjectSet) -> Iterator[UntranslatableMachine]:
    namespace = namespace_of(machine)
    for each in documents.references(machine.spec.cloudInit):
        if each.value(object_set, namespace) is None:
            yield each.missing(object_set, namespace, f"{machine.metadata.name}-cloudinit")
