"""VirtRigaud's objects made again from a machine's description, so that there is one mapping to KubeVirt: `to_kubevirt`."""

import base64
from collections.abc import Iterator, Sequence

import msgspec

from paddock.base.errors import PaddockError
from paddock.contract.description import USER_DATA, FirstDisk, MachineDescription, is_ignition, on_pod_network
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ClassPayload, DiskPayload, NetworkPayload, PlacementPayload
from paddock.contract.specs import ImageMetadata, ImagePrepare, VMImageSpec
from paddock.contract.specs import LocalObjectReference as SecretReference
from paddock.dialects.virtrigaud.kinds import machine as spec
from paddock.dialects.virtrigaud.kinds import vmclass
from paddock.dialects.virtrigaud.kinds import vmnetworkattachment as net
from paddock.dialects.virtrigaud.kinds.provider import Provider, ProviderSpec
from paddock.dialects.virtrigaud.kinds.shared import GROUP, ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.errors import (
    EncryptionRequired,
    MissingReference,
    MissingReferences,
    UntranslatableVirtualMachine,
)
from paddock.dialects.virtrigaud.translate.forward import to_kubevirt
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

API_VERSION = f"{GROUP}/v1beta1"
# Names of what is only here to be looked up.
_PROVIDER, _CLASS = "provider", "class"
_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci")
# What the translation remembers of objects that are only there to be translated.
_INVENTED = (marks.PROVIDER, marks.CLASS, marks.IMAGE, marks.NETWORKS, marks.SOURCE)
# The first type that fits counts.
_KINDS: tuple[tuple[type[PaddockError], ErrorKind], ...] = (
    (EncryptionRequired, ErrorKind.NOT_SUPPORTED),
    (MissingReference, ErrorKind.NOT_FOUND),
    (MissingReferences, ErrorKind.NOT_FOUND),
)


def translate(
    description: MachineDescription, boot: FirstDisk, namespace: str, rendering: Rendering, secrets: Sequence[Resource] = ()
) -> Translated[tuple[Resource, ...]]:
    """Return the objects that a machine consists of; the Secret with its guest's document is the last. Raises a `ProviderError`. Pure."""
    networks = [_network(namespace, description.name, index, each) for index, each in enumerate(description.networks)]
    user_data = _user_data_secret(description, namespace)
    image_ref = ObjectRef(name=boot.name or description.name, namespace=boot.namespace or namespace)
    machine = VirtrigaudVirtualMachine(
        apiVersion=API_VERSION,
        kind="VirtualMachine",
        metadata=ObjectMeta(name=description.name, namespace=namespace),
        spec=spec.VirtrigaudMachineSpec(
            providerRef=ObjectRef(name=_PROVIDER),
            classRef=ObjectRef(name=_CLASS),
            imageRef=image_ref if boot.image is not None else None,
            importedDisk=None if boot.image is not None else spec.ImportedDiskRef(diskID=boot.name),
            networks=[ref for ref, _ in networks] or None,
            disks=[_disk(each) for each in description.disks] or None,
            resources=_resources(description.hardware),
            userData=_user_data(description, user_data),
            metaData=_meta_data(description.meta_data),
            placement=_placement(description.placement),
            # The manager starts it when it wants it to run.
            powerState="Off",
            tags=list(description.tags) or None,
        ),
    )
    provider = Provider(metadata=ObjectMeta(name=_PROVIDER, namespace=namespace), spec=ProviderSpec(type="qemu"))
    hardware = vmclass.VMClass(metadata=ObjectMeta(name=_CLASS, namespace=namespace), spec=class_spec(description.hardware))
    objects: list[Resource] = [provider, hardware, *(each for _, each in networks if each is not None), *secrets]
    if boot.image is not None:
        objects.append(_image(image_ref, boot.image))
    if user_data is not None:
        objects.append(user_data)
    # What describes an object is not looked at; its kind is, where a loss names it.
    object_set = ObjectSet((_named(each) for each in objects), complete=True)
    try:
        result = to_kubevirt(machine, object_set, rendering)
    except UntranslatableVirtualMachine as error:
        kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), ErrorKind.INVALID_SPEC)
        raise ProviderError(kind, error.what, why=error.why, fix=error.fix, reason=error.reason_code) from error
    return Translated((*_without_invented(result.value), *(() if user_data is None else (user_data,))), result.losses)


def _without_invented(objects: Sequence[Resource]) -> Iterator[Resource]:
    """The objects, the machine without the names of objects that do not exist."""
    for each in objects:
        if not isinstance(each, VirtualMachine):
            yield each
            continue
        annotations = {key: value for key, value in (each.metadata.annotations or {}).items() if key not in _INVENTED}
        yield msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, annotations=annotations))


def _named(resource: Resource) -> Resource:
    if resource.kind:
        return resource
    return msgspec.structs.replace(resource, apiVersion=API_VERSION, kind=type(resource).__name__)


def _disk(disk: DiskPayload) -> spec.DiskSpec:
    controller = None
    if disk.scsi:
        controller = spec.SCSIControllerSpec(
            controller=disk.scsi.controller,
            sharedBus=disk.scsi.shared_bus or "noSharing",
            controllerType=disk.scsi.controller_type or "pvscsi",
        )
    return spec.DiskSpec(
        name=disk.name, sizeGiB=disk.size_gib, type=disk.type or "thin", storageClass=disk.storage_class or None, scsi=controller
    )


def _resources(machine_class: ClassPayload) -> spec.VirtualMachineResources | None:
    """The graphics processors; the sizes are the class's."""
    if not machine_class.gpu:
        return None
    gpu = spec.GPUConfig(count=machine_class.gpu.count, type=machine_class.gpu.type or None, memory=machine_class.gpu.memory_mib or None)
    return spec.VirtualMachineResources(gpu=gpu)


def _placement(placement: PlacementPayload) -> spec.ProviderPlacement:
    """The datastore is a StorageClass, and is dealt with apart."""
    return spec.ProviderPlacement(
        cluster=placement.cluster or None,
        host=placement.host or None,
        storagePod=placement.storage_pod or None,
        folder=placement.folder or None,
    )


def class_spec(machine_class: ClassPayload) -> vmclass.VMClassSpec:
    """Return the class that a payload was made from."""
    performance, limits, defaults = machine_class.performance_profile, machine_class.resource_limits, machine_class.disk_defaults
    return vmclass.VMClassSpec(
        cpu=machine_class.cpu,
        memory=f"{machine_class.memory_mib}Mi",
        firmware=machine_class.firmware or "BIOS",
        guestToolsPolicy=machine_class.guest_tools_policy or "install",
        extraConfig=machine_class.extra_config or None,
        diskDefaults=None
        if defaults is None or not defaults.size_gib
        else vmclass.DiskDefaults(
            type=defaults.type or "thin",
            size=f"{defaults.size_gib}Gi",
            iops=defaults.iops or None,
            storageClass=defaults.storage_class or None,
        ),
        performanceProfile=None
        if performance is None
        else vmclass.PerformanceProfile(
            latencySensitivity=performance.latency_sensitivity or "normal",
            cpuHotAddEnabled=performance.cpu_hot_add_enabled,
            memoryHotAddEnabled=performance.memory_hot_add_enabled,
            virtualizationBasedSecurity=performance.virtualization_based_security,
            nestedVirtualization=performance.nested_virtualization,
            hyperThreadingPolicy=performance.hyper_threading_policy or "auto",
        ),
        securityProfile=_security(machine_class),
        resourceLimits=None
        if limits is None
        else vmclass.VMResourceLimits(
            cpuLimit=limits.cpu_limit,
            cpuReservation=limits.cpu_reservation,
            cpuShares=limits.cpu_shares,
            memoryLimit=_mebibytes(limits.memory_limit_mib),
            memoryReservation=_mebibytes(limits.memory_reservation_mib),
        ),
    )


def _security(machine_class: ClassPayload) -> vmclass.SecurityProfile | None:
    profile = machine_class.security_profile
    if profile is None:
        return None
    encrypted = profile.encryption_enabled or profile.require_encryption or bool(profile.key_provider)
    policy = vmclass.EncryptionPolicy(
        enabled=profile.encryption_enabled, keyProvider=profile.key_provider or None, requireEncryption=profile.require_encryption
    )
    return vmclass.SecurityProfile(
        secureBoot=profile.secure_boot,
        tpmEnabled=profile.tpm_enabled,
        tpmVersion=profile.tpm_version or None,
        vtdEnabled=profile.vtd_enabled,
        encryptionPolicy=policy if encrypted else None,
    )


def _mebibytes(count: int | None) -> str | None:
    return None if not count else f"{count}Mi"


def _image(ref: ObjectRef, image: VMImageSpec) -> VMImage:
    """The image without what only describes it, and how it is prepared."""
    architecture = image.metadata.architecture if image.metadata is not None else None
    metadata = ImageMetadata(architecture=architecture) if architecture is not None else None
    checks = image.prepare.validateChecksum if image.prepare is not None else True
    prepare = None if checks else ImagePrepare(validateChecksum=False)
    return VMImage(
        metadata=ObjectMeta(name=ref.name, namespace=ref.namespace),
        spec=VMImageSpec(source=image.source, prepare=prepare, metadata=metadata),
    )


def _network(namespace: str, machine: str, index: int, network: NetworkPayload) -> tuple[spec.VMNetworkRef, net.VMNetworkAttachment | None]:
    """Return an interface of the machine, and the network that it is on; None stands for the pod network."""
    name = network.name or f"nic{index}"
    config = _network_config(network)
    ref = spec.VMNetworkRef(
        name=name,
        networkRef=None if config is None else ObjectRef(name=f"{machine}-{name}"),
        ipAddress=network.static_ip or None,
        macAddress=network.mac_address or None,
        prefix=network.prefix or None,
        gateway=network.gateway or None,
        dns=network.dns or None,
    )
    if config is None:
        return ref, None
    attachment = net.VMNetworkAttachment(
        apiVersion=API_VERSION,
        kind="VMNetworkAttachment",
        metadata=ObjectMeta(name=f"{machine}-{name}", namespace=namespace),
        spec=net.VMNetworkAttachmentSpec(network=config, qos=_qos(network)),
    )
    return ref, attachment


def _qos(network: NetworkPayload) -> net.NetworkQoS | None:
    if not network.qos:
        return None
    return net.NetworkQoS(
        ingressLimit=network.qos.ingress_limit, egressLimit=network.qos.egress_limit, priority=network.qos.priority, dscp=network.qos.dscp
    )


def _network_config(network: NetworkPayload) -> net.NetworkConfig | None:
    if on_pod_network(network):
        return None
    model, mtu = network.model if network.model in _MODELS else "virtio", network.mtu or net.NetworkConfig().mtu
    named = network.network_name or network.portgroup
    queues = network.driver.get("queues") if network.driver else None
    driver = net.NetworkDriver(queues=queues) if queues else None
    if network.bridge and network.vlan:
        # The only block with a bridge and a VLAN.
        block = net.ProxmoxNetwork(bridge=network.bridge, vlanTag=network.vlan, model=model, mtu=network.mtu or None)
        return net.NetworkConfig(proxmox=block)
    if network.bridge:
        bridge = net.BridgeConfig(name=network.bridge)
        return net.NetworkConfig(libvirt=net.LibvirtNetwork(bridge=bridge, model=model, driver=driver), mtu=mtu)
    return net.NetworkConfig(libvirt=net.LibvirtNetwork(networkName=named, model=model, driver=driver), mtu=mtu)


def _user_data_secret(description: MachineDescription, namespace: str) -> Secret | None:
    """Return the Secret with the guest's document. It never stands in the machine itself, where more people can read it."""
    if not description.user_data:
        return None
    return Secret(
        apiVersion="v1",
        kind="Secret",
        metadata=ObjectMeta(name=f"{description.name}-userdata", namespace=namespace),
        type="Opaque",
        data={USER_DATA: base64.b64encode(description.user_data).decode()},
    )


def _user_data(description: MachineDescription, secret: Secret | None) -> spec.UserData | None:
    if secret is None:
        return None
    reference = SecretReference(name=secret.metadata.name)
    if is_ignition(description.user_data):
        return spec.UserData(ignition=spec.Ignition(secretRef=reference))
    return spec.UserData(cloudInit=spec.CloudInitUserData(secretRef=reference))


def _meta_data(document: bytes) -> spec.MetaData | None:
    if not document:
        return None
    return spec.MetaData(cloudInit=spec.CloudInitMetaData(inline=document.decode(errors="replace")))
