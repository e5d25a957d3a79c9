"""KubeVirt to a Stakater machine: the reverse of `forward`, and what does not fit.

The machine is read as far as Stakater's API can say it; the result is translated forward again and compared, and every value
that the image lacks is a loss. Disks and DataVolumes have fixed names on Stakater's side, so the original is given those names
first; each renaming is a loss of its own.
"""

import base64
from typing import Any

import msgspec
import yaml

from paddock.dialects.stakater.kinds import fields
from paddock.dialects.stakater.kinds.virtualmachine import StakaterMachineSpec, StakaterVirtualMachine
from paddock.dialects.stakater.rules import DYNAMIC_CREDENTIALS, MANAGED_LABELS
from paddock.dialects.stakater.translate import cloudinit, names
from paddock.dialects.stakater.translate.forward import to_kubevirt
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.core.service import Service as KubernetesService
from paddock.kubernetes.meta.objects import ObjectMeta, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.storage import StorageSpec
from paddock.kubernetes.meta.translated import LossCollector, Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.networks import Interface
from paddock.kubevirt.kinds.networks import Network as KubevirtNetwork
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine as Machine
from paddock.kubevirt.kinds.volumes import CloudInitSource as CloudInitVolume
from paddock.kubevirt.kinds.volumes import Volume

_RUN_STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted")
_NO_FIELD = ("Stakater's API has no field for it", "the machine is made without it")
# Why a value did not fit, by the beginning of its path; the first that matches counts.
_REASONS: tuple[tuple[Path, tuple[str, str]], ...] = (
    (("spec", "runStrategy"), ("Stakater knows Always, RerunOnFailure, Manual and Halted", "the machine gets RerunOnFailure")),
    (("spec", "running"), ("Stakater says it with runStrategy", "runStrategy says the same")),
    (("spec", "instancetype"), ("Stakater has no instancetypes", "give cpu and memory explicitly")),
    (("spec", "preference"), ("Stakater has no preferences", "the defaults of the dialect apply")),
    (("spec", "template", "metadata"), ("Stakater's labels and annotations are put on the machine only", "running machines go without")),
    (
        ("spec", "dataVolumeTemplates"),
        ("Stakater's disks are clones of a DataSource, blank, or from a claim, a URL or a registry", _NO_FIELD[1]),
    ),
    (
        ("spec", "template", "spec", "volumes"),
        ("Stakater's disks are its own; others cannot be attached", "the machine is made without it"),
    ),
)
# Set by servers and controllers, not said by anybody.
_NOT_SAID = ("apiVersion", "kind", "status")
_SAID_OF_METADATA = ("name", "namespace", "labels", "annotations")


def from_kubevirt(vm: Machine, object_set: ObjectSet, rendering: Rendering) -> Translated[tuple[Resource, ...]]:
    """The Stakater machine that says the same, as far as it can."""
    ledger = LossCollector(f"VirtualMachine/{vm.metadata.name}")
    reading = _Reading(vm, object_set, ledger)
    front = reading.machine()
    (image,) = (made for made in to_kubevirt(front, object_set, rendering).value if isinstance(made, Machine))
    for path, value in residue(reading.renamed(), image):
        is_lost = any(path[: len(loss.path)] == loss.path for loss in ledger.losses)
        if _is_said(path) and not is_lost and not _is_same(path, vm):
            why, instead = next((said for start, said in _REASONS if path[: len(start)] == start), _NO_FIELD)
            ledger.lose(path, value, why, instead)
    return Translated((front,), ledger.losses)


def _is_said(path: Path) -> bool:
    if path[0] == "metadata":
        return len(path) > 1 and path[1] in _SAID_OF_METADATA and not (len(path) > 2 and path[2] in MANAGED_LABELS)
    return path[0] not in _NOT_SAID


def _is_same(path: Path, vm: Machine) -> bool:
    """Differences of words that mean the same."""
    if path == ("spec", "running"):
        return vm.spec.runStrategy is None
    # A document in a Secret and the same document inline are one.
    return any(part in ("cloudInitNoCloud", "cloudInitConfigDrive") for part in path) and path[-1] in (
        "userData",
        "userDataBase64",
        "secretRef",
        "name",
    )


class _Reading:
    def __init__(self, vm: Machine, object_set: ObjectSet, ledger: LossCollector) -> None:
        self.vm = vm
        self.object_set = object_set
        self.ledger = ledger
        self.instance = vm.spec.template.spec
        self.namespace = namespace_of(vm)
        self.volumes = {volume.name: volume for volume in self.instance.volumes or ()}
        self.templates = {_template_name(template): template for template in vm.spec.dataVolumeTemplates or ()}
        self.root = self._root_disk()
        # old name -> the name it has on Stakater's side
        self.disk_names: dict[str, str] = {}
        self.volume_names: dict[str, str] = {}

    def machine(self) -> StakaterVirtualMachine:
        labels = dict(self.vm.metadata.labels or {})
        parameters = fields.Parameters(
            **self._root(),
            additionalDisks=self._additional_disks(),
            **self._hardware(),
            networks=self._networks(),
            **self._guest(),
            runStrategy=self._run_strategy(),
            terminationGracePeriodSeconds=self._grace(),
            enableDynamicCredentials=labels.get(DYNAMIC_CREDENTIALS) == "true",
            service=self._service(),
            nodeSelector=self.instance.nodeSelector or {},
            additionalLabels={key: value for key, value in labels.items() if key not in MANAGED_LABELS},
            additionalAnnotations=self.vm.metadata.annotations or {},
        )
        return StakaterVirtualMachine(
            apiVersion="infrastructure.stakater.com/v1",
            kind="VirtualMachine",
            metadata=ObjectMeta(name=self.vm.metadata.name, namespace=self.vm.metadata.namespace),
            spec=StakaterMachineSpec(parameters=parameters),
        )

    # --- disks ----------------------------------------------------------------------------------------------------------

    def _disks(self) -> list[Disk]:
        return list(self.instance.domain.devices.disks or ())

    def _is_cloud_init(self, disk: Disk) -> bool:
        volume = self.volumes.get(disk.name)
        return volume is not None and (volume.cloudInitNoCloud or volume.cloudInitConfigDrive) is not None

    def _root_disk(self) -> Disk | None:
        """The disk that is booted from: the first in boot order, else the first that is not cloud-init's."""
        disks = [disk for disk in self.instance.domain.devices.disks or () if disk.cdrom is None]
        plain = [disk for disk in disks if (volume := self.volumes.get(disk.name)) and not _cloud_init_of(volume)]
        return min(plain, key=lambda disk: disk.bootOrder or 1000, default=None)

    def _template_of(self, disk: Disk) -> DataVolumeTemplate | None:
        volume = self.volumes.get(disk.name)
        if volume is None:
            return None
        if volume.dataVolume is not None:
            return self.templates.get(volume.dataVolume.name)
        return self.templates.get(volume.persistentVolumeClaim.claimName) if volume.persistentVolumeClaim else None

    def _rename(self, disk: Disk, name: str) -> None:
        self.disk_names[disk.name] = name
        template = self._template_of(disk)
        if template is not None:
            self.volume_names[_template_name(template)] = names.data_volume(self.vm.metadata.name, name)

    def _root(self) -> dict[str, Any]:
        if self.root is None:
            return {}
        self._rename(self.root, names.ROOT_DISK)
        template = self._template_of(self.root)
        if template is None:
            place = [volume.name for volume in self.instance.volumes or ()].index(self.root.name)
            path: Path = ("spec", "template", "spec", "volumes", place)
            return {"dataSource": self._other_root(self.root.name, path, self.volumes[self.root.name])}
        storage = fields.StorageParameters(size=_size(template) or "30Gi", storageClassName=_claim(template).get("storageClassName"))
        reference = template.spec.sourceRef
        if reference is None:
            name = _template_name(template)
            place = list(self.templates).index(name)
            path = ("spec", "dataVolumeTemplates", place, "spec", "source")
            return {"dataSource": self._other_root(name, path, template.spec.source), "storage": storage}
        source = fields.ImageReference(name=reference.name, namespace=reference.namespace or self.namespace)
        return {"dataSource": source, "storage": storage}

    def _other_root(self, name: str, path: Path, content: Object | None) -> fields.ImageReference:
        """The root disk comes from elsewhere: only a DataSource that does not exist yet can stand for it."""
        self.ledger.lose(
            path,
            to_data(content) if content is not None else None,
            "Stakater's root disk is always a clone of a DataSource",
            f"make a DataSource {self.namespace}/{name} of the same content first",
        )
        return fields.ImageReference(name=name, namespace=self.namespace)

    def _additional_disks(self) -> list[fields.AdditionalDisk]:
        found = []
        for disk in self._disks():
            template = self._template_of(disk)
            if disk is self.root or self._is_cloud_init(disk) or template is None or disk.disk is None:
                continue
            source = _source(template.spec.source)
            if source is None:
                continue
            self._rename(disk, disk.name)
            found.append(self._additional(disk, template, *source))
        return found

    def _additional(self, disk: Disk, template: DataVolumeTemplate, kind: str, source: fields.DiskSource | None) -> fields.AdditionalDisk:
        claim = _claim(template)
        bus = disk.disk.bus if disk.disk else None
        return fields.AdditionalDisk(
            name=disk.name,
            size=_size(template) or "0",
            storageClassName=claim.get("storageClassName"),
            accessModes=claim.get("accessModes") or ["ReadWriteMany"],
            volumeMode=claim.get("volumeMode") or "Block",
            bus=bus or "virtio",
            sourceType=kind,
            source=source,
        )

    def renamed(self) -> Machine:
        """The original with the names that Stakater's machine gives; each new name is a note."""
        templates = []
        for index, template in enumerate(self.vm.spec.dataVolumeTemplates or ()):
            old = _template_name(template)
            new = self._renamed(("spec", "dataVolumeTemplates", index, "metadata", "name"), old, self.volume_names.get(old, old))
            meta = None if template.metadata is None else msgspec.structs.replace(template.metadata, name=new)
            templates.append(msgspec.structs.replace(template, metadata=meta, spec=_as_storage(template.spec)))
        disks = [msgspec.structs.replace(disk, name=self._disk_name(disk.name)) for disk in self._disks()]
        devices = msgspec.structs.replace(self.instance.domain.devices, disks=disks or None)
        instance = msgspec.structs.replace(
            self.instance,
            domain=msgspec.structs.replace(self.instance.domain, devices=devices),
            volumes=[self._renamed_volume(index, volume) for index, volume in enumerate(self.instance.volumes or ())] or None,
        )
        running = msgspec.structs.replace(self.vm.spec.template, spec=instance)
        spec = msgspec.structs.replace(self.vm.spec, template=running, dataVolumeTemplates=templates or None)
        return msgspec.structs.replace(self.vm, spec=spec)

    def _renamed(self, path: Path, old: str, new: str) -> str:
        if old != new:
            self.ledger.lose(path, old, "the names of generated objects follow from the machine's", f"it is called {new}")
        return new

    def _disk_name(self, name: str) -> str:
        volume = self.volumes.get(name)
        if volume is not None and _cloud_init_of(volume):
            return names.CLOUD_INIT_DISK
        return self.disk_names.get(name, name)

    def _renamed_volume(self, index: int, volume: Volume) -> Volume:
        name = self._renamed(("spec", "template", "spec", "volumes", index, "name"), volume.name, self._disk_name(volume.name))
        changed = msgspec.structs.replace(volume, name=name)
        if volume.dataVolume is not None:
            new = self.volume_names.get(volume.dataVolume.name, volume.dataVolume.name)
            changed = msgspec.structs.replace(changed, dataVolume=msgspec.structs.replace(volume.dataVolume, name=new))
        return changed

    # --- everything else ------------------------------------------------------------------------------------------------

    def _hardware(self) -> dict[str, Any]:
        domain = self.instance.domain
        cpu, memory = domain.cpu, domain.memory
        loader = domain.firmware.bootloader if domain.firmware else None
        efi = loader.efi if loader else None
        guest = memory.guest if memory and memory.guest else None
        return {
            "cpu": fields.CpuTopology(
                cores=cpu.cores or 1 if cpu else 1, sockets=cpu.sockets or 1 if cpu else 1, threads=cpu.threads or 1 if cpu else 1
            ),
            "memory": fields.MemoryParameters(guest=guest or self._requested_memory()),
            "firmware": fields.FirmwareParameters(efi=efi is not None, secureBoot=None if efi is None else efi.secureBoot is not False),
        }

    def _requested_memory(self) -> int | str:
        resources = self.instance.domain.resources
        for amounts in (resources.requests, resources.limits) if resources else ():
            if amounts and "memory" in amounts:
                return amounts["memory"]
        return fields.MemoryParameters().guest

    def _networks(self) -> list[fields.NetworkParameters]:
        networks = {network.name: network for network in self.instance.networks or ()}
        interfaces = self.instance.domain.devices.interfaces or ()
        return [_network(interface, networks.get(interface.name)) for interface in interfaces if _binding(interface)]

    def _guest(self) -> dict[str, Any]:
        key = self._ssh_key()
        return {"cloudInit": self._cloud_init(), **({"sshPublicKey": key} if key else {})}

    def _cloud_init(self) -> fields.CloudInitParameters:
        volume = next((found for volume in self.instance.volumes or () if (found := _cloud_init_of(volume))), None)
        document = None if volume is None else self._user_data(volume)
        if document is None:
            return fields.CloudInitParameters()
        return _generated(document) or fields.CloudInitParameters(userData=document)

    def _user_data(self, volume: CloudInitVolume) -> str | None:
        if volume.userData is not None:
            return volume.userData
        if volume.userDataBase64 is not None:
            return base64.b64decode(volume.userDataBase64).decode(errors="replace")
        if volume.secretRef is None:
            return None
        secret = self.object_set.get(Secret, self.namespace, volume.secretRef.name)
        values = {} if secret is None else decoded(secret)
        for key in ("userdata", "userData"):
            if key in values:
                return values[key].decode(errors="replace")
        why = "the Secret is not part of the input"
        self.ledger.lose(("spec", "template", "spec", "volumes"), volume.secretRef.name, why, "the guest gets the default user data")
        return None

    def _ssh_key(self) -> fields.SSHKeySecret | None:
        for credential in self.instance.accessCredentials or ():
            key = credential.sshPublicKey
            if key is None or key.source.secret is None:
                continue
            method = key.propagationMethod
            chosen = "configDrive" if method.configDrive else "qemuGuestAgent" if method.qemuGuestAgent else "noCloud"
            secret = self.object_set.get(Secret, self.namespace, key.source.secret.secretName)
            if secret is not None and secret.metadata.name == names.ssh_key_secret(self.vm.metadata.name):
                lines = "\n".join(value.decode(errors="replace") for value in decoded(secret).values())
                return fields.SSHKeySecret(data=lines, propagationMethod=chosen)
            return fields.SSHKeySecret(secretName=key.source.secret.secretName, propagationMethod=chosen)
        return None

    def _run_strategy(self) -> str:
        if self.vm.spec.runStrategy is None:
            return "Halted" if self.vm.spec.running is False else "Always"
        return self.vm.spec.runStrategy if self.vm.spec.runStrategy in _RUN_STRATEGIES else "RerunOnFailure"

    def _grace(self) -> int:
        given = self.instance.terminationGracePeriodSeconds
        # KubeVirt's own default, so that the machine stops as it did.
        return 30 if given is None else given

    def _service(self) -> fields.ServiceParameters:
        """The LoadBalancer that selects the machine, if there is one."""
        meta = self.vm.spec.template.metadata
        labels = (meta.labels if meta else None) or {}
        for service in self.object_set.all(KubernetesService):
            spec = service.spec
            if spec is None or spec.type != "LoadBalancer" or namespace_of(service) != self.namespace:
                continue
            selects = spec.selector and all(labels.get(key) == value for key, value in spec.selector.items())
            if selects and spec.ports and len(spec.ports) == 1:
                port = spec.ports[0]
                target = port.targetPort if isinstance(port.targetPort, int) else port.port
                return fields.ServiceParameters(enabled=True, port=port.port, targetPort=target)
        return fields.ServiceParameters()


def _as_storage(spec: DataVolumeSpec) -> DataVolumeSpec:
    """Return what a claim asks for in the form that Stakater's machine gives it."""
    if spec.pvc is None or spec.storage is not None:
        return spec
    claim = {name: getattr(spec.pvc, name) for name in StorageSpec.__struct_fields__}
    return msgspec.structs.replace(spec, pvc=None, storage=StorageSpec(**claim))


def _template_name(template: DataVolumeTemplate) -> str:
    return (template.metadata.name if template.metadata else None) or ""


def _cloud_init_of(volume: Volume) -> CloudInitVolume | None:
    return volume.cloudInitNoCloud or volume.cloudInitConfigDrive


def _claim(template: DataVolumeTemplate) -> dict[str, Any]:
    claim = template.spec.storage or template.spec.pvc
    return {} if claim is None else msgspec.structs.asdict(claim)


def _size(template: DataVolumeTemplate) -> int | str | None:
    claim = template.spec.storage or template.spec.pvc
    requests = claim.resources.requests if claim and claim.resources else None
    return (requests or {}).get("storage")


def _source(source: DataVolumeSource | None) -> tuple[str, fields.DiskSource | None] | None:
    """The source type and the source of an additional disk; None where Stakater has none of the kind."""
    if source is None:
        return None
    if source.blank is not None:
        return "blank", None
    if source.pvc is not None:
        return "pvc", fields.DiskSource(pvc=fields.PvcSource(name=source.pvc.name, namespace=source.pvc.namespace))
    if source.http is not None:
        http = source.http
        made = fields.HttpImageSource(url=http.url, secretRef=http.secretRef, certConfigMap=http.certConfigMap, checksum=http.checksum)
        return "http", fields.DiskSource(http=made)
    if source.registry is not None and source.registry.url:
        registry = source.registry
        location = fields.RegistryDisk(url=registry.url or "", secretRef=registry.secretRef, certConfigMap=registry.certConfigMap)
        return "registry", fields.DiskSource(registry=location)
    return None


def _binding(interface: Interface) -> str:
    if interface.binding is not None:
        return interface.binding.name
    return next((name for name in ("bridge", "masquerade", "sriov") if getattr(interface, name) is not None), "")


def _network(interface: Interface, network: KubevirtNetwork | None) -> fields.NetworkParameters:
    multus = network.multus if network else None
    return fields.NetworkParameters(
        name=interface.name,
        type="pod" if multus is None else "multus",
        interfaceModel=interface.model or "virtio",
        bindingName=_binding(interface),
        multus=None if multus is None else fields.Multus(networkName=multus.networkName),
    )


def _generated(document: str) -> fields.CloudInitParameters | None:
    """The user and password of a document that `forward` would have made of them."""
    try:
        said = yaml.safe_load(document)
    except yaml.YAMLError:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("user"), str):
        return None
    password = said.get("password")
    expire = said.get("chpasswd", {}).get("expire") if isinstance(said.get("chpasswd", {}), dict) else None
    candidate = fields.CloudInitParameters(
        user=said["user"], password=password if isinstance(password, str) else None, passwordExpire=expire is True
    )
    renders = (cloudinit.render(fields.Parameters(cloudInit=candidate, enableDynamicCredentials=dynamic)) for dynamic in (False, True))
    return candidate if document in renders else None
