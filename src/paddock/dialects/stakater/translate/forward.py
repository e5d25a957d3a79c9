"""A Stakater machine to KubeVirt: Secrets, the machine with its DataVolumes, the Service. Every row of docs/spec/stakater.md 2.2."""

import msgspec

from paddock.dialects.stakater.kinds import effective, sshkeys
from paddock.dialects.stakater.kinds.fields import AdditionalDisk, Parameters
from paddock.dialects.stakater.kinds.fields import CloudInitParameters as GivenCloudInit
from paddock.dialects.stakater.kinds.fields import NetworkParameters as StakaterNetwork
from paddock.dialects.stakater.kinds.virtualmachine import StakaterMachineSpec, StakaterVirtualMachine
from paddock.dialects.stakater.rules import DYNAMIC_CREDENTIALS, MACHINE_LABEL
from paddock.dialects.stakater.translate import cloudinit, names
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.service import Service, ServicePort, ServiceSpec
from paddock.kubernetes.meta.fieldrecord import FieldRecord, Reasons
from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.storage import ResourceRequirements, StorageSpec
from paddock.kubernetes.meta.translated import Translated
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Empty
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.access import (
    AccessCredential,
    AgentKeyPropagation,
    CredentialSource,
    KeyPropagation,
    SecretSource,
    SSHPublicKey,
)
from paddock.kubevirt.kinds.datavolume import (
    DataVolumeSource,
    DataVolumeSpec,
    HttpSource,
    NamespacedReference,
    RegistrySource,
    SourceReference,
)
from paddock.kubevirt.kinds.devices import Devices, Disk, DiskTarget
from paddock.kubevirt.kinds.domain import CPU, DomainSpec, Memory
from paddock.kubevirt.kinds.features import Features, FeatureState
from paddock.kubevirt.kinds.firmware import BIOS, EFI, Bootloader, Firmware
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec, VirtualMachineInstanceTemplate
from paddock.kubevirt.kinds.networks import Interface, MultusNetwork, Network, PluginBinding, PodNetwork
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, DataVolumeTemplateMeta, VirtualMachineSpec
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from paddock.kubevirt.kinds.volumes import CloudInitSource, DataVolumeVolume, Volume, VolumeNameReference

_PARAMETERS: Path = ("spec", "parameters")
_REPLACED = ("userData replaces it", "the guest gets userData only")
_NO_SERVICE = ("the service is not enabled", "no Service is made")
_NO_PASSWORD = ("there is no password", "the guest has no password that could expire")
# Why values are not used. What is not named here is a field that nobody translates.
_REASONS: Reasons = (
    *(((*_PARAMETERS, "cloudInit", name), _REPLACED) for name in ("user", "password")),
    *(((*_PARAMETERS, "service", name), _NO_SERVICE) for name in ("port", "targetPort")),
    *(
        (("spec", name), ("it belongs to Crossplane, not to the machine", "it is left out"))
        for name, prop in shape.shape_of(StakaterMachineSpec).properties.items()
        if prop.field.not_honoured
    ),
)


def to_kubevirt(source: StakaterVirtualMachine, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """Everything the machine becomes, in the order in which it is to be applied."""
    record = FieldRecord(source, _reasons(source.spec.parameters.cloudInit))
    vm = record.view
    parameters = vm.spec.parameters
    document = cloudinit.render(parameters)
    secrets = _secrets(vm, document, rendering)
    machine = _machine(vm, document, rendering)
    services = (_service(vm, rendering),) if parameters.service.enabled else ()
    return Translated((*secrets, machine, *services), record.settle())


def _reasons(given_cloud_init: GivenCloudInit) -> Reasons:
    expiry = _NO_PASSWORD if given_cloud_init.userData is None else _REPLACED
    return (((*_PARAMETERS, "cloudInit", "passwordExpire"), expiry), *_REASONS)


def _secrets(vm: StakaterVirtualMachine, document: str, rendering: Rendering) -> tuple[Secret, ...]:
    name, made = vm.metadata.name, []
    key = vm.spec.parameters.sshPublicKey.data
    if key is not None:
        lines = {f"key-{index}" if index else "key": line for index, line in enumerate(sshkeys.parse(key))}
        made.append((names.ssh_key_secret(name), lines))
    if cloudinit.needs_secret(vm.spec.parameters, document):
        made.append((names.cloud_init_secret(name), {"userdata": document}))
    return tuple(
        Secret(apiVersion="v1", kind="Secret", metadata=names.meta(vm, secret, rendering.product), type="Opaque", stringData=content)
        for secret, content in made
    )


def _machine(vm: StakaterVirtualMachine, document: str, rendering: Rendering) -> Machine:
    parameters = vm.spec.parameters
    meta = names.meta(vm, vm.metadata.name, rendering.product)
    labels = dict(meta.labels or {}) | parameters.additionalLabels
    if parameters.enableDynamicCredentials:
        labels[DYNAMIC_CREDENTIALS] = "true"
    template = VirtualMachineInstanceTemplate(
        metadata=TemplateMeta(labels=names.labels(vm, rendering.product)), spec=_instance(vm, document, rendering)
    )
    return Machine(
        apiVersion="kubevirt.io/v1",
        kind="VirtualMachine",
        metadata=msgspec.structs.replace(meta, labels=labels, annotations=parameters.additionalAnnotations or None),
        spec=VirtualMachineSpec(
            runStrategy=parameters.runStrategy,
            dataVolumeTemplates=[_root_volume(vm, rendering), *(_disk_volume(vm, disk, rendering) for disk in parameters.additionalDisks)],
            template=template,
        ),
    )


def _root_volume(vm: StakaterVirtualMachine, rendering: Rendering) -> DataVolumeTemplate:
    parameters = vm.spec.parameters
    source = SourceReference(kind="DataSource", name=parameters.dataSource.name, namespace=parameters.dataSource.namespace)
    storage = StorageSpec(
        storageClassName=parameters.storage.storageClassName,
        resources=ResourceRequirements(requests={"storage": parameters.storage.size}),
    )
    return DataVolumeTemplate(
        metadata=DataVolumeTemplateMeta(
            name=names.data_volume(vm.metadata.name, names.ROOT_DISK), labels=names.labels(vm, rendering.product)
        ),
        spec=DataVolumeSpec(sourceRef=source, storage=storage),
    )


def _disk_volume(vm: StakaterVirtualMachine, disk: AdditionalDisk, rendering: Rendering) -> DataVolumeTemplate:
    storage = StorageSpec(
        storageClassName=effective.disk_class(disk, vm.spec.parameters.storage),
        accessModes=disk.accessModes,
        volumeMode=disk.volumeMode,
        resources=ResourceRequirements(requests={"storage": disk.size}),
    )
    return DataVolumeTemplate(
        metadata=DataVolumeTemplateMeta(name=names.data_volume(vm.metadata.name, disk.name), labels=names.labels(vm, rendering.product)),
        spec=DataVolumeSpec(source=_source(disk, namespace_of(vm)), storage=storage),
    )


def _source(disk: AdditionalDisk, namespace: str) -> DataVolumeSource:
    given = disk.source if disk.sourceType != "blank" else None
    if given is not None and given.pvc is not None:
        # CDI refuses an empty namespace.
        return DataVolumeSource(pvc=NamespacedReference(namespace=given.pvc.namespace or namespace, name=given.pvc.name))
    if given is not None and given.http is not None:
        return DataVolumeSource(
            http=HttpSource(
                url=given.http.url,
                secretRef=given.http.secretRef,
                certConfigMap=given.http.certConfigMap,
                checksum=given.http.checksum,
            )
        )
    if given is not None and given.registry is not None:
        registry = given.registry
        return DataVolumeSource(
            registry=RegistrySource(url=registry.url, secretRef=registry.secretRef, certConfigMap=registry.certConfigMap)
        )
    return DataVolumeSource(blank=Empty())


def _instance(vm: StakaterVirtualMachine, document: str, rendering: Rendering) -> VirtualMachineInstanceSpec:
    parameters, name = vm.spec.parameters, vm.metadata.name
    disks = [
        (names.ROOT_DISK, "virtio"),
        *((disk.name, disk.bus) for disk in parameters.additionalDisks),
        (names.CLOUD_INIT_DISK, "virtio"),
    ]
    volumes = [
        Volume(name=disk, dataVolume=DataVolumeVolume(name=names.data_volume(name, disk)))
        for disk, _ in disks
        if disk != names.CLOUD_INIT_DISK
    ]
    networks = effective.networks(parameters.networks)
    return VirtualMachineInstanceSpec(
        terminationGracePeriodSeconds=parameters.terminationGracePeriodSeconds,
        nodeSelector=parameters.nodeSelector or None,
        accessCredentials=_credentials(vm),
        domain=DomainSpec(
            cpu=CPU(cores=parameters.cpu.cores, sockets=parameters.cpu.sockets, threads=parameters.cpu.threads),
            memory=Memory(guest=parameters.memory.guest),
            features=_features(parameters, rendering),
            firmware=_firmware(parameters, rendering),
            devices=Devices(
                rng=Empty(),
                disks=[Disk(name=disk, disk=DiskTarget(bus=bus)) for disk, bus in disks],
                interfaces=[_interface(network) for network in networks] or None,
                autoattachPodInterface=None if networks else False,
            ),
        ),
        networks=[_network(network) for network in networks] or None,
        volumes=[*volumes, _cloud_init_volume(vm, document)],
    )


def _features(parameters: Parameters, rendering: Rendering) -> Features:
    secure = effective.secure_boot(parameters.firmware, rendering.architecture)
    return Features(acpi=FeatureState(), smm=FeatureState(enabled=True) if secure else None)


def _firmware(parameters: Parameters, rendering: Rendering) -> Firmware:
    if not parameters.firmware.efi:
        return Firmware(bootloader=Bootloader(bios=BIOS()))
    # Always written, because KubeVirt takes a missing value for true.
    secure = effective.secure_boot(parameters.firmware, rendering.architecture)
    return Firmware(bootloader=Bootloader(efi=EFI(secureBoot=secure)))


def _interface(network: StakaterNetwork) -> Interface:
    binding = network.bindingName
    return Interface(
        name=network.name,
        model=network.interfaceModel,
        bridge=Empty() if binding == "bridge" else None,
        masquerade=Empty() if binding == "masquerade" else None,
        sriov=Empty() if binding == "sriov" else None,
        binding=None if binding in effective.CORE_BINDINGS else PluginBinding(name=binding),
    )


def _network(network: StakaterNetwork) -> Network:
    if effective.network_type(network) == "pod":
        return Network(name=network.name, pod=PodNetwork())
    name = network.multus.networkName if network.multus else None
    return Network(name=network.name, multus=MultusNetwork(networkName=name or ""))


def _cloud_init_volume(vm: StakaterVirtualMachine, document: str) -> Volume:
    if cloudinit.needs_secret(vm.spec.parameters, document):
        content = CloudInitSource(secretRef=VolumeNameReference(name=names.cloud_init_secret(vm.metadata.name)))
    else:
        content = CloudInitSource(userData=document)
    # The guest finds the keys only on a disk of the kind that carries them.
    if vm.spec.parameters.sshPublicKey.propagationMethod == "configDrive":
        return Volume(name=names.CLOUD_INIT_DISK, cloudInitConfigDrive=content)
    return Volume(name=names.CLOUD_INIT_DISK, cloudInitNoCloud=content)


def _credentials(vm: StakaterVirtualMachine) -> list[AccessCredential] | None:
    given = vm.spec.parameters.sshPublicKey
    if given.data is None and given.secretName is None:
        return None
    secret = given.secretName or names.ssh_key_secret(vm.metadata.name)
    key = SSHPublicKey(
        source=CredentialSource(secret=SecretSource(secretName=secret)),
        propagationMethod=_propagation(vm.spec.parameters),
    )
    return [AccessCredential(sshPublicKey=key)]


def _propagation(parameters: Parameters) -> KeyPropagation:
    match parameters.sshPublicKey.propagationMethod:
        case "configDrive":
            return KeyPropagation(configDrive=Empty())
        case "qemuGuestAgent":
            return KeyPropagation(qemuGuestAgent=AgentKeyPropagation(users=[parameters.cloudInit.user]))
        case _:
            return KeyPropagation(noCloud=Empty())


def _service(vm: StakaterVirtualMachine, rendering: Rendering) -> Service:
    given = vm.spec.parameters.service
    return Service(
        apiVersion="v1",
        kind="Service",
        metadata=names.meta(vm, names.service(vm.metadata.name), rendering.product),
        spec=ServiceSpec(
            type="LoadBalancer",
            selector={MACHINE_LABEL: vm.metadata.name},
            ports=[ServicePort(name="access", protocol="TCP", port=given.port, targetPort=given.targetPort)],
        ),
    )
