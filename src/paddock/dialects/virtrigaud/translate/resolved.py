"""A machine with everything that it refers to: the start of each translation to KubeVirt.

References are looked up in the world, in the namespace that they name. The class is always needed: nothing else says how large
the machine is. For the rest, what a complete world lacks is an error; what an incomplete one lacks may be somewhere else, so
the translation goes on and says what it does instead.
"""

import dataclasses

from paddock.dialects.virtrigaud.kinds.machine import VMNetworkRef
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.shared import ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import VMNetworkAttachment
from paddock.dialects.virtrigaud.translate import marks, reasons
from paddock.dialects.virtrigaud.translate.account import Account
from paddock.dialects.virtrigaud.translate.errors import MissingReference, MissingReferences
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path

# What a provider is taken for whose type is not known: one without blocks of its own.
UNKNOWN_TYPE = "qemu"


@dataclasses.dataclass(frozen=True)
class ResolvedNic:
    """A network card with its network; `account` is the network's, shared by all cards on it."""

    ref: VMNetworkRef
    position: int
    network: VMNetworkAttachment | None
    account: Account | None


@dataclasses.dataclass(frozen=True)
class VirtrigaudInputs:
    """The inputs of the translation, and the accounts of everything that is read."""

    vm: VirtrigaudVirtualMachine
    vmclass: VMClass
    image: VMImage | None
    provider: Provider | None
    cards: tuple[ResolvedNic, ...]
    object_set: ObjectSet
    rendering: Rendering
    account: Account
    class_account: Account
    image_account: Account | None
    provider_account: Account | None
    missing: list[MissingReference]

    @property
    def name(self) -> str:
        """The name of the machine; the beginning of one that is still to be made."""
        return marks.name_of(self.vm)

    @property
    def namespace(self) -> str:
        """The namespace of the machine and of what belongs to it."""
        return namespace_of(self.vm)

    @property
    def provider_type(self) -> str:
        """The type of provider whose blocks of images and networks count."""
        return self.provider.spec.type if self.provider is not None else UNKNOWN_TYPE

    def secret(self, namespace: str, name: str, path: Path) -> dict[str, bytes] | None:
        """The values of a Secret. A missing one is noted."""
        found = self.object_set.get(Secret, namespace, name)
        if found is None:
            self.missing.append(MissingReference("Secret", namespace, name, path))
            return None
        return decoded(found)

    def knows_secret(self, name: str) -> bool:
        """Return whether a Secret beside the machine exists."""
        return self.object_set.get(Secret, self.namespace, name) is not None

    def losses(self) -> tuple[Loss, ...]:
        """Everything that does not fit, object by object."""
        networks = {id(nic.account): nic.account for nic in self.cards if nic.account is not None}
        accounts = (self.account, self.class_account, self.image_account, *networks.values(), self.provider_account)
        return tuple(loss for account in accounts if account is not None for loss in account.settle())

    def judge(self) -> None:
        """Raise what a complete world lacks."""
        if self.missing and self.object_set.complete:
            raise self.missing[0] if len(self.missing) == 1 else MissingReferences(self.missing)


def resolve(vm: VirtrigaudVirtualMachine, object_set: ObjectSet, rendering: Rendering) -> VirtrigaudInputs:
    """Look everything up. Raises `MissingReference` for the class, and for anything in a complete world."""
    missing: list[MissingReference] = []
    account = Account(vm, reasons.OF_MACHINES)
    vmclass = object_set.get(VMClass, _namespace(vm.spec.classRef, vm), vm.spec.classRef.name)
    provider = object_set.get(Provider, _namespace(vm.spec.providerRef, vm), vm.spec.providerRef.name)
    image = None
    if provider is None:
        missing.append(_missing("Provider", vm.spec.providerRef, vm, ("spec", "providerRef", "name")))
    if vmclass is None:
        missing.append(_missing("VMClass", vm.spec.classRef, vm, ("spec", "classRef", "name")))
    if vm.spec.imageRef is not None:
        image = object_set.get(VMImage, _namespace(vm.spec.imageRef, vm), vm.spec.imageRef.name)
        if image is None:
            missing.append(_missing("VMImage", vm.spec.imageRef, vm, ("spec", "imageRef", "name")))
    cards = _cards(vm, object_set, missing)
    if vmclass is None:
        found = missing if object_set.complete else [each for each in missing if each.kind == "VMClass"]
        raise found[0] if len(found) == 1 else MissingReferences(found)
    resolved = VirtrigaudInputs(
        vm=vm,
        vmclass=vmclass,
        image=image,
        provider=provider,
        cards=cards,
        object_set=object_set,
        rendering=rendering,
        account=account,
        class_account=Account(vmclass, reasons.OF_CLASSES),
        image_account=None if image is None else Account(image, reasons.OF_IMAGES),
        provider_account=None if provider is None else Account(provider, reasons.OF_PROVIDERS),
        missing=missing,
    )
    resolved.judge()
    return resolved


def _namespace(ref: ObjectRef, vm: VirtrigaudVirtualMachine) -> str:
    return ref.namespace or namespace_of(vm)


def _missing(kind: str, ref: ObjectRef, vm: VirtrigaudVirtualMachine, path: Path) -> MissingReference:
    return MissingReference(kind, _namespace(ref, vm), ref.name, path)


def _cards(vm: VirtrigaudVirtualMachine, object_set: ObjectSet, missing: list[MissingReference]) -> tuple[ResolvedNic, ...]:
    accounts: dict[int, Account] = {}
    cards = []
    for position, ref in enumerate(vm.spec.networks or ()):
        network = None
        if ref.networkRef is not None:
            network = object_set.get(VMNetworkAttachment, _namespace(ref.networkRef, vm), ref.networkRef.name)
            if network is None:
                path = ("spec", "networks", position, "networkRef", "name")
                missing.append(_missing("VMNetworkAttachment", ref.networkRef, vm, path))
        account = None
        if network is not None:
            account = accounts.setdefault(id(network), Account(network, reasons.OF_NETWORKS))
        cards.append(ResolvedNic(ref, position, network, account))
    return tuple(cards)
