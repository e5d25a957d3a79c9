"""The rules across fields of a Stakater machine, each a pure function (docs/spec/stakater.md sections 1, 4.2 and 5)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.base import names, quantity
from paddock.dialects.stakater.kinds import effective, sshkeys
from paddock.dialects.stakater.kinds.fields import AdditionalDisk, Parameters
from paddock.kubernetes.meta import cloudconfig
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule, transition

if TYPE_CHECKING:
    from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine

PARAMETERS: Path = ("spec", "parameters")
RESERVED_DISKS = ("rootdisk", "cloudinitdisk")
MANAGED_BY = "app.kubernetes.io/managed-by"
MACHINE_LABEL = "infrastructure.stakater.com/virtual-machine"
DYNAMIC_CREDENTIALS = "kubevirt.io/dynamic-credentials-support"
MANAGED_LABELS = (MANAGED_BY, MACHINE_LABEL, DYNAMIC_CREDENTIALS)
_ANNOTATION_BYTES = 256 * 1024
_P = "spec.parameters"


def _parameters(vm: "StakaterVirtualMachine") -> Parameters:
    return vm.spec.parameters


@rule(
    "stakater/name",
    Cel("", "self.metadata.name.size() <= 63", "must be no more than 63 characters", ".metadata.name"),
)
def name_is_a_label(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The name becomes a label value, a host name and a prefix, so it is a DNS-1123 label of at most 63 characters."""
    name = vm.metadata.name
    if len(name) > 63:
        yield finding.invalid(("metadata", "name"), name, "must be no more than 63 characters", "stakater/name")
    elif name and names.is_subdomain(name) and not names.is_label(name):
        yield finding.invalid(("metadata", "name"), name, "must be a DNS-1123 label", "stakater/name")


@rule(
    "stakater/reserved-disk",
    Cel(f"{_P}.additionalDisks[]", "!(self.name in ['rootdisk', 'cloudinitdisk'])", "reserved disk name", ".name"),
)
def disk_names_are_free(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The disks that every machine has keep their names."""
    for index, disk in enumerate(_parameters(vm).additionalDisks):
        if disk.name in RESERVED_DISKS:
            yield finding.invalid(
                (*PARAMETERS, "additionalDisks", index, "name"),
                disk.name,
                "reserved disk name",
                "stakater/reserved-disk",
            )


@rule(
    "stakater/blank-read-only",
    Cel(
        f"{_P}.additionalDisks[]",
        "self.sourceType != 'blank' || self.accessModes.size() != 1 || self.accessModes[0] != 'ReadOnlyMany'",
        "a blank disk cannot be read-only",
        ".accessModes",
    ),
)
def blank_disks_are_writable(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A blank disk that is read-only could never be filled."""
    for index, disk in enumerate(_parameters(vm).additionalDisks):
        if disk.sourceType == "blank" and disk.accessModes == ["ReadOnlyMany"]:
            path = (*PARAMETERS, "additionalDisks", index, "accessModes")
            yield finding.invalid(path, disk.accessModes, "a blank disk cannot be read-only", "stakater/blank-read-only")


@rule(
    "stakater/disk-source",
    Cel(
        f"{_P}.additionalDisks[]",
        "self.sourceType == 'blank' || (has(self.source) && (self.sourceType == 'pvc' ? has(self.source.pvc) : "
        "self.sourceType == 'http' ? has(self.source.http) : has(self.source.registry)))",
        "the sourceType needs a location",
        ".source",
        "FieldValueRequired",
    ),
    Cel(
        f"{_P}.additionalDisks[]",
        "self.sourceType != 'blank' || !has(self.source)",
        "a blank disk has no source",
        ".source",
        "FieldValueForbidden",
    ),
)
def disk_sources_fit(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Every source type but blank needs its location, and blank has none."""
    for index, disk in enumerate(_parameters(vm).additionalDisks):
        yield from _disk_source(disk, (*PARAMETERS, "additionalDisks", index, "source"))


def _disk_source(disk: AdditionalDisk, path: Path) -> Iterator[Finding]:
    if disk.sourceType == "blank":
        if disk.source is not None:
            yield finding.forbidden(path, "a blank disk has no source", "stakater/disk-source")
    elif disk.sourceType in ("pvc", "http", "registry"):
        if disk.source is None or getattr(disk.source, disk.sourceType) is None:
            why = f'sourceType "{disk.sourceType}" needs a location'
            yield finding.required((*path, disk.sourceType), "stakater/disk-source", why)
        for other in ("pvc", "http", "registry"):
            if other != disk.sourceType and disk.source is not None and getattr(disk.source, other) is not None:
                yield finding.forbidden((*path, other), f'the sourceType is "{disk.sourceType}"', "stakater/disk-source")


@rule("stakater/vcpus")
def vcpus_are_limited(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The product of cores, sockets and threads stays within the limit of the installation."""
    cpu = _parameters(vm).cpu
    count = cpu.cores * cpu.sockets * cpu.threads
    if min(cpu.cores, cpu.sockets, cpu.threads) > 0 and count > settings.max_vcpus:
        text = f"Invalid value: {count} vCPUs exceeds the limit {settings.max_vcpus}"
        yield Finding(path=(*PARAMETERS, "cpu"), message=text, rule="stakater/vcpus")


@rule("stakater/little-memory")
def efi_needs_memory(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """EFI firmware may not boot in less than 256Mi (a warning)."""
    parameters = _parameters(vm)
    if parameters.firmware.efi and quantity.parse(parameters.memory.guest) < quantity.parse("256Mi"):
        text = f"{parameters.memory.guest} may be too little for EFI firmware to boot; give at least 256Mi or set firmware.efi to false"
        yield finding.warning((*PARAMETERS, "memory", "guest"), text, "stakater/little-memory")


@rule(
    "stakater/one-pod-network",
    Cel(
        _P,
        "!has(self.networks) || self.networks.filter(n, has(n.type) ? n.type == 'pod' : "
        "!(has(n.multus) && has(n.multus.networkName))).size() <= 1",
        "at most one pod network",
        ".networks",
    ),
)
def one_pod_network(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine has at most one pod network."""
    seen = False
    for index, network in enumerate(_parameters(vm).networks or ()):
        if effective.network_type(network) != "pod":
            continue
        if seen:
            yield finding.invalid((*PARAMETERS, "networks", index), network.name, "at most one pod network", "stakater/one-pod-network")
        seen = True


@rule(
    "stakater/multus",
    Cel(
        f"{_P}.networks[]",
        "!has(self.type) || self.type != 'multus' || (has(self.multus) && has(self.multus.networkName))",
        "a multus network needs the name of its NetworkAttachmentDefinition",
        ".multus",
        "FieldValueRequired",
    ),
    Cel(
        f"{_P}.networks[]",
        "!has(self.type) || self.type != 'pod' || !has(self.multus)",
        "only for multus networks",
        ".multus",
        "FieldValueForbidden",
    ),
)
def multus_fits(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A multus network names its definition, and no other network has one."""
    for index, network in enumerate(_parameters(vm).networks or ()):
        path = (*PARAMETERS, "networks", index, "multus")
        name = network.multus.networkName if network.multus else None
        if network.type == "multus" and not name:
            why = "a multus network needs the name of its NetworkAttachmentDefinition"
            yield finding.required((*path, "networkName"), "stakater/multus", why)
        if network.type == "pod" and network.multus is not None:
            yield finding.forbidden(path, "only for multus networks", "stakater/multus")


@rule(
    "stakater/binding",
    Cel(
        f"{_P}.networks[]",
        "self.bindingName != 'masquerade' || (has(self.type) ? self.type == 'pod' : !(has(self.multus) && has(self.multus.networkName)))",
        "masquerade works only on the pod network",
        ".bindingName",
    ),
    Cel(
        f"{_P}.networks[]",
        "self.bindingName != 'sriov' || (has(self.type) ? self.type == 'multus' : (has(self.multus) && has(self.multus.networkName)))",
        "sriov needs a multus network",
        ".bindingName",
    ),
)
def bindings_fit(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Masquerade is for the pod network only, SR-IOV for multus networks only."""
    for index, network in enumerate(_parameters(vm).networks or ()):
        path = (*PARAMETERS, "networks", index, "bindingName")
        kind = effective.network_type(network)
        if network.bindingName == "masquerade" and kind == "multus":
            yield finding.invalid(path, network.bindingName, "masquerade works only on the pod network", "stakater/binding")
        if network.bindingName == "sriov" and kind == "pod":
            yield finding.invalid(path, network.bindingName, "sriov needs a multus network", "stakater/binding")


@rule("stakater/cloud-init")
def user_data_is_cloud_config(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """User data that says it is cloud-config must be a YAML mapping; with it, user and password have no effect (warnings)."""
    cloud_init = _parameters(vm).cloudInit
    path = (*PARAMETERS, "cloudInit", "userData")
    if cloud_init.userData is None:
        return
    problem = cloudconfig.problem(cloud_init.userData)
    if problem:
        yield finding.secret_invalid(path, f"not valid cloud-config: {problem}", "stakater/cloud-init")
    else:
        for text in cloudconfig.user_data_problems(cloud_init.userData):
            yield finding.warning(path, text, "stakater/cloud-init")
    if cloud_init.password is not None or cloud_init.user != "cloud-user":
        yield finding.warning(path, "user/password are ignored because userData is set", "stakater/cloud-init")


@rule(
    "stakater/ssh-key",
    Cel(f"{_P}.sshPublicKey", "!has(self.data) || !has(self.secretName)", "data and secretName are mutually exclusive"),
)
def ssh_key_is_usable(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Inline keys are public OpenSSH keys, and come either inline or from a Secret."""
    key = _parameters(vm).sshPublicKey
    path = (*PARAMETERS, "sshPublicKey")
    if key.data is not None and key.secretName is not None:
        yield finding.secret_invalid(path, "data and secretName are mutually exclusive", "stakater/ssh-key")
    if key.data is None:
        return
    try:
        sshkeys.parse(key.data)
    except sshkeys.NotAPublicKey as error:
        yield finding.secret_invalid((*path, "data"), str(error), "stakater/ssh-key")


@rule("stakater/access")
def somebody_can_log_in(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Warn beforehand of ways of access that will not work."""
    parameters = _parameters(vm)
    key = parameters.sshPublicKey
    has_key = key.data is not None or key.secretName is not None
    if not has_key and parameters.cloudInit.password is None and parameters.cloudInit.userData is None:
        text = "no password and no SSH key: only the image's own credentials will work"
        yield finding.warning((*PARAMETERS, "cloudInit"), text, "stakater/access")
    if has_key and key.propagationMethod == "qemuGuestAgent" and not parameters.enableDynamicCredentials:
        text = "guests of the RHEL family need the agent running and the SELinux boolean virt_qemu_ga_manage_ssh"
        yield finding.warning((*PARAMETERS, "sshPublicKey", "propagationMethod"), text, "stakater/access")


@rule(
    "stakater/secure-boot",
    Cel(
        f"{_P}.firmware",
        "self.efi || !has(self.secureBoot) || !self.secureBoot",
        "Secure Boot needs EFI (firmware.efi) and SMM",
        ".secureBoot",
    ),
)
def secure_boot_needs_efi(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Secure Boot asked for explicitly needs EFI, and a processor that has it."""
    firmware = _parameters(vm).firmware
    path = (*PARAMETERS, "firmware", "secureBoot")
    if firmware.secureBoot and not firmware.efi:
        why = "Secure Boot needs EFI (firmware.efi) and SMM"
        yield finding.invalid(path, True, why, "stakater/secure-boot")
    if firmware.secureBoot and settings.architecture == "arm64":
        yield finding.invalid(path, True, "not supported on arm64", "stakater/secure-boot")


@rule(
    "stakater/managed-labels",
    Cel(
        _P,
        "!has(self.additionalLabels) || !['app.kubernetes.io/managed-by', 'infrastructure.stakater.com/virtual-machine', "
        "'kubevirt.io/dynamic-credentials-support'].exists(k, k in self.additionalLabels)",
        "managed by the controller",
        ".additionalLabels",
        "FieldValueForbidden",
    ),
)
def managed_labels_stay(vm: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The labels that the controller writes are its own, and annotations have a total size."""
    parameters = _parameters(vm)
    for key in MANAGED_LABELS:
        if key in parameters.additionalLabels:
            yield finding.forbidden((*PARAMETERS, "additionalLabels", key), "managed by the controller", "stakater/managed-labels")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.additionalAnnotations.items())
    if size > _ANNOTATION_BYTES:
        yield finding.too_long((*PARAMETERS, "additionalAnnotations"), _ANNOTATION_BYTES, "stakater/managed-labels", "bytes")


_IMMUTABLE = "field is immutable"


@transition(
    "stakater/immutable",
    Cel(
        "",
        "!has(oldSelf.status) || !has(oldSelf.status.vm) || self.spec.parameters.dataSource == oldSelf.spec.parameters.dataSource",
        _IMMUTABLE,
        ".spec.parameters.dataSource",
    ),
)
def data_stays(old: "StakaterVirtualMachine", new: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Fields that would mean other data cannot change once the generated machine exists."""
    if old.status is None or old.status.vm is None:
        return
    before, after = _parameters(old), _parameters(new)
    for key in ("name", "namespace"):
        if getattr(before.dataSource, key) != getattr(after.dataSource, key):
            path = (*PARAMETERS, "dataSource", key)
            yield finding.invalid(path, getattr(after.dataSource, key), _IMMUTABLE, "stakater/immutable")
    if before.storage.storageClassName != after.storage.storageClassName:
        path = (*PARAMETERS, "storage", "storageClassName")
        yield finding.invalid(path, after.storage.storageClassName, _IMMUTABLE, "stakater/immutable")
    earlier = {disk.name: disk for disk in before.additionalDisks}
    for index, disk in enumerate(after.additionalDisks):
        for key in ("storageClassName", "accessModes", "volumeMode", "sourceType", "source"):
            if disk.name in earlier and getattr(earlier[disk.name], key) != getattr(disk, key):
                path = (*PARAMETERS, "additionalDisks", index, key)
                yield Finding(path=path, message=f"Invalid value: {_IMMUTABLE}", rule="stakater/immutable")


@transition("stakater/shrink")
def disks_do_not_shrink(old: "StakaterVirtualMachine", new: "StakaterVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A disk grows or stays."""
    before, after = _parameters(old), _parameters(new)
    if quantity.parse(after.storage.size) < quantity.parse(before.storage.size):
        yield finding.forbidden((*PARAMETERS, "storage", "size"), "disks cannot shrink", "stakater/shrink")
    earlier = {disk.name: disk for disk in before.additionalDisks}
    for index, disk in enumerate(after.additionalDisks):
        if disk.name in earlier and quantity.parse(disk.size) < quantity.parse(earlier[disk.name].size):
            yield finding.forbidden((*PARAMETERS, "additionalDisks", index, "size"), "disks cannot shrink", "stakater/shrink")


RULES = (
    name_is_a_label,
    disk_names_are_free,
    blank_disks_are_writable,
    disk_sources_fit,
    vcpus_are_limited,
    efi_needs_memory,
    one_pod_network,
    multus_fits,
    bindings_fit,
    user_data_is_cloud_config,
    ssh_key_is_usable,
    somebody_can_log_in,
    secure_boot_needs_efi,
    managed_labels_stay,
)
TRANSITIONS = (data_stays, disks_do_not_shrink)
