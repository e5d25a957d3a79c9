"""Wishes of a machine that not every provider can fulfil: the features that it needs, and those that its Provider does not report.

Members that upstream's contract has are sent whatever is reported. A provider that reports nothing of them may obey or not, and nobody can
tell: the machine is made, and a condition names them. What a machine must not be made without is refused.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from paddock.contract import features, specs
from paddock.contract.messages import DescribeResponse
from paddock.contract.specs import ImageOptimization, PrepareStorage
from paddock.dialects.virtrigaud.kinds import sources
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import PerformanceProfile, SecurityProfile, VMClass, VMClassSpec, VMResourceLimits
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import NetworkDriver, VMNetworkAttachment
from paddock.dialects.virtrigaud.plan import preparation, reasons, rootdisk
from paddock.dialects.virtrigaud.plan.references import MachineDependencies, provider_of
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.world import namespace_of

_LIMITATIONS = "limitations"
# The features that members of the manifest need.
_CLASS_FEATURES = {"diskDefaults.iops": features.DISK_IOPS, "diskDefaults.storageClass": features.DISK_STORAGE}
_TEMPLATE_FEATURES = {"source.proxmox.node": features.IMAGE_NODE}
_NETWORK_FEATURES: Mapping[str, Mapping[str, str]] = {
    "vsphere": {"distributedSwitch": features.NETWORK_SWITCH},
    "libvirt": {
        **{f"driver.{name}": f"{features.NETWORK_DRIVER}.{name}" for name in NetworkDriver.__struct_fields__},
        "filterRef": features.NETWORK_FILTER,
    },
    "proxmox": {"firewall": features.NETWORK_FIREWALL, "rateLimit": features.NETWORK_RATE, "mtu": features.NETWORK_MTU},
}
_PREPARE = {"storage": PrepareStorage.__struct_fields__, "optimization": ImageOptimization.__struct_fields__}
_LONGEST = 4096


class FeatureNeed(msgspec.Struct, frozen=True):
    """A feature, what asks for it, and whether the machine must not be made without."""

    feature: str
    text: str
    vital: bool = False


def needs(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies) -> Iterator[FeatureNeed]:
    """Yield what the machine asks for beyond the common."""
    kind = dependencies.provider.spec.type if dependencies.provider is not None else ""
    yield from _of_machine(vm, dependencies)
    if dependencies.vmclass is not None:
        yield from _of_class(dependencies.vmclass)
    if dependencies.image is not None:
        yield from _of_image(dependencies.image, kind)
    for network in dependencies.networks.values():
        yield from _of_network(network, kind)


def _of_machine(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies) -> Iterator[FeatureNeed]:
    own = vm.spec.placement
    defaults = dependencies.provider.spec.defaults if dependencies.provider is not None else None
    pool = (own.resourcePool if own is not None else None) or (defaults.resourcePool if defaults is not None else None)
    if pool:
        yield FeatureNeed(features.RESOURCE_POOL, f"resourcePool {pool}")
    if rootdisk.imported_data(vm):
        yield FeatureNeed(features.IMPORTED_DISKS, "imported data disks", vital=True)
    for disk in vm.spec.disks or ():
        if disk.storageClass is not None:
            yield FeatureNeed(features.STORAGE_CLASS, f"storageClass of disk {disk.name}")
        if disk.scsi is not None:
            yield FeatureNeed(features.SCSI, f"scsi of disk {disk.name}")
    if vm.spec.resources is not None and vm.spec.resources.gpu is not None:
        yield FeatureNeed(features.GPU, "spec.resources.gpu", vital=True)


def _of_class(vmclass: VMClass) -> Iterator[FeatureNeed]:
    spec, place = vmclass.spec, f"VMClass {namespace_of(vmclass)}/{vmclass.metadata.name}"
    yield from _set(spec, _CLASS_FEATURES, place)
    if spec.guestToolsPolicy != VMClassSpec().guestToolsPolicy:
        yield FeatureNeed(features.GUEST_TOOLS, f"guestToolsPolicy {spec.guestToolsPolicy} of {place}")
    for feature, member, plain in (
        (features.RESOURCE_LIMITS, "resourceLimits", VMResourceLimits()),
        (features.PERFORMANCE, "performanceProfile", PerformanceProfile()),
        (features.SECURITY, "securityProfile", SecurityProfile()),
    ):
        given = getattr(spec, member)
        for name in _changed(given, plain) if given is not None else ():
            yield FeatureNeed(f"{feature}.{name}", f"{member}.{name} of {place}", vital=_must_encrypt(spec) and name == "encryptionPolicy")


def _set(struct: msgspec.Struct | None, features_by_member: Mapping[str, str], place: str) -> Iterator[FeatureNeed]:
    """The members of an object that say something, by name or by path, with the features that they need."""
    for path, feature in features_by_member.items():
        value: object = struct
        for name in path.split("."):
            value = getattr(value, name, None)
        if value:
            yield FeatureNeed(feature, f"{path} of {place}")


def _changed(struct: msgspec.Struct, plain: msgspec.Struct) -> Iterator[str]:
    """The members that do not have their default."""
    return (name for name in struct.__struct_fields__ if getattr(struct, name) != getattr(plain, name))


def _must_encrypt(spec: VMClassSpec) -> bool:
    policy = spec.securityProfile.encryptionPolicy if spec.securityProfile is not None else None
    return policy is not None and policy.requireEncryption


def _of_image(image: VMImage, kind: str) -> Iterator[FeatureNeed]:
    spec, place = image.spec, f"VMImage {namespace_of(image)}/{image.metadata.name}"
    chosen = specs.image_block(spec.source, kind)
    if chosen == "proxmox" and spec.source.proxmox is not None:
        yield from _set(spec, _TEMPLATE_FEATURES, place)
        if not spec.source.proxmox.fullClone:
            yield FeatureNeed(features.FULL_CLONE, f"source.proxmox.fullClone of {place}")
    if not preparation.needs_import(spec, kind):
        return
    if kind != "qemu" and (credentials := [path for path in sources.CREDENTIALS if path.split(".")[0] == chosen]):
        yield from _set(spec.source, dict.fromkeys(credentials, features.IMAGE_CREDENTIALS), place)
    for block, members in _PREPARE.items():
        found = getattr(spec.prepare, block, None)
        for member in members:
            # The blocks of other types of provider are not for this one.
            if getattr(found, member, None) and (member not in specs.PROVIDER_BLOCKS or member == kind):
                yield FeatureNeed(f"{features.IMAGE_PREPARE}.{block}.{member}", f"prepare.{block}.{member} of {place}")


def _of_network(network: VMNetworkAttachment, kind: str) -> Iterator[FeatureNeed]:
    spec, place = network.spec, f"VMNetworkAttachment {namespace_of(network)}/{network.metadata.name}"
    if spec.qos is not None:
        yield FeatureNeed(features.NETWORK_QOS, f"qos of {place}")
    if spec.security is not None:
        yield FeatureNeed(features.NETWORK_SECURITY, f"security of {place}")
    config, chosen = spec.network, sources.network_block(spec.network, kind)
    if config.mtu != type(config)().mtu:
        yield FeatureNeed(features.NETWORK_MTU, f"network.mtu of {place}")
    if chosen is not None:
        block = getattr(config, chosen)
        yield from (FeatureNeed(each.feature, f"network.{chosen}.{each.text}") for each in _set(block, _NETWORK_FEATURES[chosen], place))
    if chosen == "vsphere" and config.vsphere is not None:
        vlan, shaping = config.vsphere.vlan, config.vsphere.trafficShaping
        if vlan is not None and vlan.type in ("trunk", "pvlan"):
            yield FeatureNeed(f"{features.NETWORK_VLANS}.{vlan.type}", f"network.vsphere.vlan of type {vlan.type} of {place}")
        if shaping is not None and shaping.enabled:
            yield FeatureNeed(features.NETWORK_SHAPING, f"network.vsphere.trafficShaping of {place}")
    allocation = spec.ipAllocation
    if allocation is not None and allocation.type == "Static":
        yield from _set(spec, {"ipAllocation.staticConfig.routes": features.NETWORK_ROUTES}, place)
    yield from _set(spec, {"ipAllocation.dnsConfig.searchDomains": features.NETWORK_SEARCH}, place)


# --- compared with what is reported -------------------------------------------------------------------------------------------


def has_vital_needs(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies) -> bool:
    """Return whether a Provider has to report something before the machine is made."""
    return any(each.vital for each in needs(vm, dependencies))


def refuse(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, reported: ReportedCapabilities | None) -> None:
    """Raise `Refusal` for a machine that its Provider cannot make as it must be."""
    known = reported.features if reported is not None else None
    missing = [each.text for each in needs(vm, dependencies) if each.vital and not features.has(known, each.feature)]
    if missing:
        what = f"{provider_of(vm)} does not report that it can do {', '.join(missing)}"
        fix = "remove it, or use a Provider whose status.reportedCapabilities.features has it"
        raise Refusal(what, fix=fix, reason=reasons.UNSUPPORTED)


def unsupported(vm: VirtrigaudVirtualMachine, dependencies: MachineDependencies, reported: Iterable[str] | None) -> tuple[str, ...]:
    """Return the features that the machine asks for and its Provider does not report, and the blocks of networks that do not count."""
    missing = [each.text for each in needs(vm, dependencies) if not features.has(reported, each.feature)]
    kind = dependencies.provider.spec.type if dependencies.provider is not None else ""
    for network in dependencies.networks.values() if kind else ():
        if is_behind_nat(network, kind):
            place = f"VMNetworkAttachment {namespace_of(network)}/{network.metadata.name}"
            missing += [
                f"spec.network.{name} of {place}, whose type is nat (set type to bridged to use the block, or remove it)"
                for name in sources.network_blocks(network.spec.network, kind)
            ]
    return tuple(missing)


def is_behind_nat(network: VMNetworkAttachment, provider_type: str) -> bool:
    """Return whether a network is the pod network of type qemu, which is behind NAT; its blocks are of other hypervisors."""
    return provider_type == "qemu" and network.spec.network.type == "nat"


def limitations(answer: DescribeResponse) -> tuple[str, ...]:
    """Return a provider's words about a machine that it could not make as asked: a JSON list in a member of its own words."""
    try:
        words = msgspec.json.decode(answer.provider_raw_json or "{}", type=dict[str, str])
        return tuple(msgspec.json.decode(words.get(_LIMITATIONS) or "[]", type=list[str]))
    except msgspec.MsgspecError:
        return ()


def message(vm: VirtrigaudVirtualMachine, missing: tuple[str, ...], said: tuple[str, ...], unread: tuple[str, ...] = ()) -> str:
    """The message of the condition; empty when there is nothing to say."""
    found = [f"{provider_of(vm)} does not report that it can do {', '.join(missing)}"] if missing else []
    found += [f"Nothing acts on {', '.join(unread)}"] if unread else []
    found += [f"{provider_of(vm)} says: {'; '.join(said)}"] if said else []
    text = ". ".join(found)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
