"""The objects that a machine refers to: what is missing, and what its namespace may not use (docs/spec/virtrigaud.md 2.1.1 step 3)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from paddock.dialects.virtrigaud.kinds.provider import Provider, ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.shared import ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import VMNetworkAttachment
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import VMPlacementPolicy
from paddock.dialects.virtrigaud.plan import marks
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet, namespace_of

R = TypeVar("R", bound=Resource)


class MachineReference(msgspec.Struct, frozen=True):
    """A reference of a machine."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class MachineDependencies(msgspec.Struct, frozen=True):
    """The objects that a machine refers to, as far as they exist and may be used."""

    provider: Provider | None = None
    vmclass: VMClass | None = None
    image: VMImage | None = None
    # by namespace and name
    networks: Mapping[tuple[str, str], VMNetworkAttachment] = {}
    policy: VMPlacementPolicy | None = None
    # the Secrets beside the machine, by name
    secrets: Mapping[str, Mapping[str, bytes]] = {}
    missing: tuple[MachineReference, ...] = ()
    refused: tuple[MachineReference, ...] = ()

    def network(self, vm: VirtrigaudVirtualMachine, ref: ObjectRef) -> VMNetworkAttachment | None:
        """The network that a card of the machine names."""
        return self.networks.get((ref.namespace or namespace_of(vm), ref.name))


def reported(dependencies: MachineDependencies) -> ReportedCapabilities | None:
    """What the Provider of a machine reports; None if it has not reported anything yet."""
    status = dependencies.provider.status if dependencies.provider is not None else None
    return status.reportedCapabilities if status is not None else None


def provider_of(vm: VirtrigaudVirtualMachine) -> MachineReference:
    """The reference to the Provider."""
    return _reference("Provider", vm, vm.spec.providerRef)


def references(vm: VirtrigaudVirtualMachine) -> Iterator[MachineReference]:
    """Yield what a machine refers to, each once, in the order in which it is reported."""
    spec = vm.spec
    found = [provider_of(vm), _reference("VMClass", vm, spec.classRef)]
    if spec.imageRef is not None:
        found.append(_reference("VMImage", vm, spec.imageRef))
    found += [_reference("VMNetworkAttachment", vm, each.networkRef) for each in spec.networks or () if each.networkRef is not None]
    if spec.placementRef is not None:
        found.append(MachineReference("VMPlacementPolicy", namespace_of(vm), spec.placementRef.name))
    found += [MachineReference("Secret", namespace_of(vm), name) for name in secrets(vm)]
    yield from dict.fromkeys(found)


def secrets(vm: VirtrigaudVirtualMachine) -> Iterator[str]:
    """Yield the names of the Secrets with the guest's documents."""
    user, meta = vm.spec.userData, vm.spec.metaData
    sources = (
        user.cloudInit if user is not None else None,
        user.ignition if user is not None else None,
        meta.cloudInit if meta is not None else None,
    )
    for source in sources:
        if source is not None and source.secretRef is not None:
            yield source.secretRef.name


def resolve(vm: VirtrigaudVirtualMachine, object_set: ObjectSet) -> MachineDependencies:
    """Look everything up in a complete set of objects. An object of another namespace needs that namespace's consent."""
    missing: list[MachineReference] = []
    refused: list[MachineReference] = []

    def find(cls: type[R], reference: MachineReference) -> R | None:
        found = object_set.get(cls, reference.namespace, reference.name)
        if found is None:
            missing.append(reference)
        elif not may_use(namespace_of(vm), reference.namespace, found.metadata.annotations or {}):
            refused.append(reference)
            return None
        return found

    spec = vm.spec
    provider = find(Provider, provider_of(vm))
    vmclass = find(VMClass, _reference("VMClass", vm, spec.classRef))
    image = find(VMImage, _reference("VMImage", vm, spec.imageRef)) if spec.imageRef is not None else None
    refs = dict.fromkeys(
        _reference("VMNetworkAttachment", vm, each.networkRef) for each in spec.networks or () if each.networkRef is not None
    )
    networks = {(each.namespace, each.name): found for each in refs if (found := find(VMNetworkAttachment, each)) is not None}
    placement = spec.placementRef
    policy = find(VMPlacementPolicy, MachineReference("VMPlacementPolicy", namespace_of(vm), placement.name)) if placement else None
    names = dict.fromkeys(secrets(vm))
    held = {name: decoded(secret) for name in names if (secret := find(Secret, MachineReference("Secret", namespace_of(vm), name)))}
    return MachineDependencies(provider, vmclass, image, networks, policy, held, tuple(missing), tuple(refused))


def may_use(namespace: str, owner: str, annotations: Mapping[str, str]) -> bool:
    """Return whether machines of a namespace may refer to an object of another one; its owner says so in an annotation."""
    allowed = {each.strip() for each in annotations.get(marks.CONSUMERS, "").split(",")}
    return namespace == owner or "*" in allowed or namespace in allowed


def listed(missing: Iterable[MachineReference]) -> str:
    """Return the sentence about what does not exist."""
    return "there is no " + ", and no ".join(map(str, missing))


def refusal(refused: Iterable[MachineReference], namespace: str) -> str:
    """Return the sentence about what may not be used."""
    names = ", ".join(map(str, refused))
    return f"{names} may not be used from the namespace {namespace}; its owner can add the annotation {marks.CONSUMERS}: {namespace}"


def _reference(kind: str, vm: VirtrigaudVirtualMachine, ref: ObjectRef) -> MachineReference:
    return MachineReference(kind, ref.namespace or namespace_of(vm), ref.name)
