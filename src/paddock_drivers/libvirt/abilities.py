"""The abilities of a hypervisor, read from its capabilities. Pure."""

import msgspec

from paddock_drivers.libvirt import xmltree


class HypervisorAbilities(msgspec.Struct, frozen=True, kw_only=True):
    """The domains that a hypervisor runs best."""

    # kvm, qemu (instructions are emulated), or test
    type: str = "qemu"
    architecture: str = "x86_64"
    machine: str = "q35"
    most_cpus: int = 255
    cpu_modes: frozenset[str] = frozenset()
    efi: bool = False
    secure_boot: bool = False
    tpm: bool = False
    # of the host's processor: Intel or AMD
    vendor: str = ""
    cpu_model: str = ""
    # MHz of the host's processor, 0 if it is not known
    mhz: int = 0
    host_cpus: int = 0
    host_memory_mib: int = 0
    hostname: str = ""
    version: str = ""
    machines: tuple[str, ...] = ()

    @property
    def accelerated(self) -> bool:
        """Return whether guests run on the processor itself."""
        return self.type == "kvm"


def of_capabilities(host: str, domains: str) -> HypervisorAbilities:
    """Return the abilities of virConnectGetCapabilities' text, and of virConnectGetDomainCapabilities' one, which may be missing."""
    root = xmltree.parse(host)
    guest = root.find("guest/arch")
    found = HypervisorAbilities(
        type=(xmltree.attribute(root, "guest/arch/domain", "type") or "qemu"),
        architecture=guest.get("name", "x86_64") if guest is not None else "x86_64",
        machine=xmltree.content(root, "guest/arch/machine"),
        vendor=xmltree.content(root, "host/cpu/vendor"),
        cpu_model=xmltree.content(root, "host/cpu/model"),
        machines=tuple((each.text or "").strip() for each in root.iterfind("guest/arch/machine")),
    )
    return _of_domains(found, domains) if domains else found


def _of_domains(hypervisor_abilities: HypervisorAbilities, text: str) -> HypervisorAbilities:
    root = xmltree.parse(text)
    most = root.find("vcpu")
    loader = root.find("os/loader")
    secure = {each.text for each in loader.iterfind("enum[@name='secure']/value")} if loader is not None else set()
    backends = {each.text for each in root.iterfind("devices/tpm/enum[@name='backendModel']/value")}
    return msgspec.structs.replace(
        hypervisor_abilities,
        type=xmltree.content(root, "domain") or hypervisor_abilities.type,
        architecture=xmltree.content(root, "arch") or hypervisor_abilities.architecture,
        machine="q35" if "q35" in xmltree.content(root, "machine") else xmltree.content(root, "machine"),
        most_cpus=int(most.get("max", "255")) if most is not None else 255,
        cpu_modes=frozenset(each.get("name", "") for each in root.iterfind("cpu/mode") if each.get("supported") == "yes"),
        efi=any(each.text == "efi" for each in root.iterfind("os/enum[@name='firmware']/value")),
        secure_boot="yes" in secure,
        tpm="emulator" in backends,
    )
