"""The class of a machine, with the machine's own sizes, as virtual hardware."""

from paddock.base import quantity
from paddock.dialects.virtrigaud.kinds.vmclass import PerformanceProfile, SecurityProfile, VMResourceLimits
from paddock.dialects.virtrigaud.translate.errors import EncryptionRequired
from paddock.dialects.virtrigaud.translate.resolved import VirtrigaudInputs
from paddock.kubernetes.schema.field import Quantity
from paddock.kubevirt.kinds.devices import GPU, TPM
from paddock.kubevirt.kinds.domain import CPU, Memory, Resources
from paddock.kubevirt.kinds.features import Features, FeatureState
from paddock.kubevirt.kinds.firmware import BIOS, EFI, Bootloader, Firmware

_MI = quantity.parse("1Mi")
# What memory needs so that KubeVirt could plug in more of it.
_PLUGGABLE_FROM, _BLOCK = quantity.parse("1Gi"), quantity.parse("2Mi")
_LEAST_REQUEST = quantity.parse("1M")
ARCHITECTURES = {"amd64": "amd64", "x86_64": "amd64", "arm64": "arm64", "aarch64": "arm64"}


def performance(resolved: VirtrigaudInputs) -> PerformanceProfile:
    """The class's, or one that says nothing."""
    return resolved.vmclass.spec.performanceProfile or PerformanceProfile()


def security(resolved: VirtrigaudInputs) -> SecurityProfile:
    """The class's, or one that says nothing."""
    return resolved.vmclass.spec.securityProfile or SecurityProfile()


def architecture(resolved: VirtrigaudInputs) -> str:
    """The image's, and the installation's when the image does not say."""
    said = image_architecture(resolved)
    return said or resolved.rendering.architecture


def image_architecture(resolved: VirtrigaudInputs) -> str | None:
    """Return the architecture in the image's metadata."""
    metadata = resolved.image.spec.metadata if resolved.image is not None else None
    return ARCHITECTURES.get(metadata.architecture) if metadata is not None else None


def cpus(resolved: VirtrigaudInputs) -> int:
    """The number of processors: the machine's own, else the class's."""
    own = resolved.vm.spec.resources.cpu if resolved.vm.spec.resources is not None else None
    return own or resolved.vmclass.spec.cpu or 1


def cpu(resolved: VirtrigaudInputs) -> CPU:
    """One socket with all cores; sockets of one core each where processors may be added, because sockets can be plugged in."""
    resolved.account.took("resources", "cpu")
    account, profile, count = resolved.class_account, performance(resolved), cpus(resolved)
    account.took("cpu")
    account.took("performanceProfile", "cpuHotAddEnabled")
    account.took("performanceProfile", "nestedVirtualization")
    pinned = profile.latencySensitivity == "high"
    if pinned:
        account.took("performanceProfile", "latencySensitivity")
    growing = profile.cpuHotAddEnabled
    return CPU(
        cores=1 if growing else count,
        sockets=count if growing else 1,
        threads=1,
        maxSockets=None if growing else 1,
        # The guest sees the node's own extensions for virtualization.
        model="host-passthrough" if profile.nestedVirtualization else None,
        dedicatedCpuPlacement=True if pinned else None,
    )


def _guest_memory(resolved: VirtrigaudInputs) -> Quantity:
    """The memory: the machine's own, else the class's, cut to whole MiB."""
    own = resolved.vm.spec.resources.memoryMiB if resolved.vm.spec.resources is not None else None
    resolved.account.took("resources", "memoryMiB")
    if own:
        resolved.class_account.took("memory")
        return f"{own}Mi"
    asked = resolved.vmclass.spec.memory
    whole, rest = divmod(quantity.parse(asked), _MI)
    if whole and not rest:
        resolved.class_account.took("memory")
        return asked
    made = f"{max(1, whole)}Mi"
    resolved.class_account.lose(("memory",), asked, "memory is counted in whole MiB", f"the guest has {made}")
    return made


def memory(resolved: VirtrigaudInputs) -> Memory:
    """The memory, and how far it may grow."""
    guest = _guest_memory(resolved)
    resolved.class_account.took("performanceProfile", "memoryHotAddEnabled")
    growing, able = performance(resolved).memoryHotAddEnabled, could_grow(guest, architecture(resolved))
    if growing and not able:
        why = "KubeVirt plugs memory only into machines on amd64 that have at least 1Gi in steps of 2Mi"
        resolved.class_account.lose(("performanceProfile", "memoryHotAddEnabled"), True, why, "memory grows when the machine is off")
    fixed = not growing and able
    return Memory(guest=guest, maxGuest=guest if fixed else None)


def could_grow(guest: Quantity, kind: str) -> bool:
    """Return whether KubeVirt can plug more memory into a machine with as much."""
    size = quantity.parse(guest)
    return kind == "amd64" and size >= _PLUGGABLE_FROM and size % _BLOCK == 0


def resources(resolved: VirtrigaudInputs, guest: Quantity) -> Resources | None:
    """Return the requests and limits of a machine with this memory."""
    given = resolved.vmclass.spec.resourceLimits or VMResourceLimits()
    account = resolved.class_account
    limit = given.memoryLimit
    if limit is not None and quantity.parse(limit) < quantity.parse(guest):
        why = "KubeVirt's limit is for the memory the guest sees"
        account.lose(("resourceLimits", "memoryLimit"), limit, why, "the machine may use all of its memory")
        limit = None
    elif limit is not None:
        account.took("resourceLimits", "memoryLimit")
    request = _request(resolved, given.memoryReservation, limit)
    if request is None and limit is None:
        return None
    return Resources(
        requests=None if request is None else {"memory": request},
        limits=None if limit is None else {"memory": limit},
    )


def _request(resolved: VirtrigaudInputs, asked: Quantity | None, limit: Quantity | None) -> Quantity | None:
    if asked is None:
        return None
    size, path = quantity.parse(asked), ("resourceLimits", "memoryReservation")
    pinned = performance(resolved).latencySensitivity == "high"
    why = ""
    if size < _LEAST_REQUEST:
        why = "KubeVirt's requests begin at 1M"
    elif limit is not None and size > quantity.parse(limit):
        why = "KubeVirt refuses a request above the limit"
    elif pinned and limit is not None and size != quantity.parse(limit):
        why = "a machine with pinned processors gets exactly its limit"
    if why:
        resolved.class_account.lose(path, asked, why, "nothing is promised apart from the guest's memory")
        return None
    resolved.class_account.took(*path)
    return asked


def firmware(resolved: VirtrigaudInputs) -> tuple[Firmware, Features | None]:
    """The firmware, and the features that it needs."""
    account, profile = resolved.class_account, security(resolved)
    asked, kind = resolved.vmclass.spec.firmware, architecture(resolved)
    secure = profile.secureBoot and kind == "amd64"
    if profile.secureBoot and not secure:
        why = f"KubeVirt has no Secure Boot on {kind}"
        account.lose(("securityProfile", "secureBoot"), True, why, "the guest boots without it")
    account.took("securityProfile", "secureBoot")
    account.took("firmware")
    if asked == "BIOS" and not profile.secureBoot and kind == "amd64":
        return Firmware(bootloader=Bootloader(bios=BIOS())), None
    # Always written, because KubeVirt takes a missing value for true.
    efi = EFI(secureBoot=secure)
    features = Features(smm=FeatureState(enabled=True)) if secure else None
    return Firmware(bootloader=Bootloader(efi=efi)), features


def tpm(resolved: VirtrigaudInputs) -> TPM | None:
    """The TPM. Its state is kept, as any other hypervisor does it: a guest's keys are in it."""
    account, profile = resolved.class_account, security(resolved)
    account.took("securityProfile", "tpmEnabled")
    path = ("securityProfile", "tpmVersion")
    if profile.tpmVersion == "1.2" and profile.tpmEnabled:
        account.lose(path, profile.tpmVersion, "KubeVirt's TPM is of version 2.0", "the guest has a TPM 2.0")
    elif profile.tpmVersion and not profile.tpmEnabled:
        account.lose(path, profile.tpmVersion, "tpmEnabled is false", "the guest has no TPM")
    account.took(*path)
    return TPM(persistent=True) if profile.tpmEnabled else None


def gpus(resolved: VirtrigaudInputs) -> list[GPU] | None:
    """A device for each graphics processor, by the name that the cluster's configuration has for its type."""
    asked = resolved.vm.spec.resources.gpu if resolved.vm.spec.resources is not None else None
    if asked is None:
        return None
    path = ("resources", "gpu")
    if not asked.type:
        instead = "the machine has none; give a type that KubeVirt's configuration permits"
        resolved.account.lose(path, {"count": asked.count}, "KubeVirt finds devices by their name only", instead)
        return None
    resolved.account.took(*path, "count")
    resolved.account.took(*path, "type")
    return [GPU(name=f"gpu{index}", deviceName=asked.type) for index in range(asked.count)]


def judge_encryption(resolved: VirtrigaudInputs) -> None:
    """A class that refuses machines without encryption is kept to its word."""
    policy = security(resolved).encryptionPolicy
    if policy is not None and policy.requireEncryption:
        raise EncryptionRequired(resolved.name, resolved.vmclass.metadata.name)
