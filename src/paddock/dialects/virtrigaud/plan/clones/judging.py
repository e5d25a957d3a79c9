"""Wishes of a VMClone that nobody can fulfil: refused with a reason before a provider is called, or listed as left out."""

from paddock.contract import features
from paddock.dialects.virtrigaud.kinds.provider import Provider, ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.vmclone import CloneOptions, ClonePerformance, CloneStorage, Customization, VMClone
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.plan import preparation, reasons
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.world import namespace_of

FULL, LINKED, INSTANT = "FullClone", "LinkedClone", "InstantClone"
_CONTRACT = "the provider contract has no field for it"


def options(clone: VMClone) -> CloneOptions:
    """The options of a clone."""
    return clone.spec.options or CloneOptions()


def customization(clone: VMClone) -> Customization:
    """The differences of the new machine."""
    return clone.spec.customization or Customization()


def copies_machine(clone: VMClone) -> bool:
    """Return whether the source is a machine, now or in a snapshot, and no image."""
    return clone.spec.source.vmRef is not None or clone.spec.source.snapshotRef is not None


def check(clone: VMClone) -> None:
    """Raise `Refusal` for what no provider can do, whatever the source."""
    wanted = options(clone)
    if clone.spec.target.placementRef is not None and copies_machine(clone):
        what = "spec.target.placementRef cannot be kept: a provider puts the clone of a machine where the machine is"
        raise Refusal(what, fix="remove it, or clone an image", reason=reasons.UNSUPPORTED)
    if wanted.type == INSTANT:
        raise _unsupported("options.type InstantClone", fix="use FullClone or LinkedClone")
    if wanted.includeSnapshots:
        raise _unsupported("options.includeSnapshots", fix="remove it")
    if wanted.type == LINKED and not copies_machine(clone):
        raise Refusal(
            "a LinkedClone needs a machine whose disks it shares, and the source is an image",
            fix="use FullClone",
            reason=reasons.LINKED_CLONE_UNSUPPORTED,
        )
    _check_customization(customization(clone))


def _check_customization(customization: Customization) -> None:
    if customization.sysprep is not None and customization.sysprep.enabled:
        raise _unsupported("customization.sysprep", fix="customize the guest with userData")
    for command in customization.guestCommands or ():
        if command.stage == "pre-customization":
            why = "guests run commands when their first-boot configuration is in place"
            what = "customization.guestCommands with stage pre-customization cannot be run"
            raise Refusal(what, why=why, fix="use post-customization or first-boot", reason=reasons.UNSUPPORTED)
    for certificate in customization.certificates or ():
        if certificate.store == "my":
            what = f"certificate {certificate.name} cannot be installed: cloud-init has no store for certificates of the machine itself"
            raise Refusal(what, fix="use the store root, ca or trust", reason=reasons.UNSUPPORTED)


def check_provider(clone: VMClone, source_provider: tuple[str, str]) -> None:
    """Raise `Refusal` for a target at another Provider than that of the source."""
    ref = clone.spec.target.providerRef
    if ref is None:
        return
    if (ref.namespace or namespace_of(clone), ref.name) != source_provider:
        where = "/".join(source_provider)
        what = f"the source is at Provider {where}, and its clone stays there: spec.target.providerRef names another one"
        raise Refusal(what, fix="remove it, or move the machine with a VMMigration", reason=reasons.UNSUPPORTED_SOURCE)


def check_snapshot(clone: VMClone, can: ReportedCapabilities | None, provider: str) -> str:
    """Return what has to be known first; raises `Refusal` for a Provider that clones machines only as they are."""
    ref = clone.spec.source.snapshotRef
    if ref is None:
        return ""
    if can is None:
        return f"Provider {provider} has not reported yet whether it can clone snapshots"
    if not features.has(can.features, features.CLONE_SNAPSHOT):
        what = f"Provider {provider} cannot clone VMSnapshot {namespace_of(clone)}/{ref.name}: it clones machines only as they are"
        fix = "revert the machine to the snapshot with spec.snapshot.revertToRef, and clone the machine"
        raise Refusal(what, fix=fix, reason=reasons.UNSUPPORTED_SOURCE)
    return ""


def check_linked(clone: VMClone, can: ReportedCapabilities | None, provider: str) -> str:
    """Return what has to be known first; raises `Refusal` for a Provider that cannot make linked clones."""
    if options(clone).type != LINKED:
        return ""
    if can is None:
        return f"Provider {provider} has not reported yet whether it can make linked clones"
    if not can.supportsLinkedClones:
        what = f"Provider {provider} cannot make linked clones"
        raise Refusal(what, fix="use options.type FullClone", reason=reasons.LINKED_CLONE_UNSUPPORTED)
    return ""


def check_template(clone: VMClone, image: VMImage, provider: Provider) -> None:
    """Raise `Refusal` for a templateRef to an image that is no template at the Provider."""
    if clone.spec.source.templateRef is None or not preparation.needs_import(image.spec, provider.spec.type):
        return
    what = f"VMImage {namespace_of(image)}/{image.metadata.name} is no template at a Provider of type {provider.spec.type}"
    raise Refusal(what, fix="name it as imageRef, so that it is prepared", reason=reasons.UNSUPPORTED_SOURCE)


def unsent(clone: VMClone) -> tuple[str, ...]:
    """The wishes about the copy that have no field in the contract: the clone is made without them."""
    wanted = options(clone)
    storage, performance = wanted.storage or CloneStorage(), wanted.performance or ClonePerformance()
    found = [f"options.storage.{name}" for name in ("diskFormat", "storageClass", "enableCompression") if getattr(storage, name)]
    if not storage.preferThinProvisioning:
        found.append("options.storage.preferThinProvisioning")
    if wanted.parallel:
        found.append("options.parallel")
    default = ClonePerformance()
    names = ("priority", "ioThrottling", "maxIOPS", "concurrentDisks")
    found += [f"options.performance.{name}" for name in names if getattr(performance, name) != getattr(default, name)]
    return tuple(found)


def _unsupported(what: str, *, fix: str) -> Refusal:
    return Refusal(f"{what} cannot be requested: {_CONTRACT}", fix=fix, reason=reasons.UNSUPPORTED)
