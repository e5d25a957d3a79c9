"""All checks of a host, in the order of the report, and the few sentences that others make of them. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from paddock.app.doctor import acceleration, networking, programs, surroundings
from paddock.app.doctor.check import CheckState, HostCheck, Judgement
from paddock.app.doctor.facts import DoctorFacts

# identifier -> subject and judge; docs/run/hosts.md has a row for each
CHECKS: Mapping[str, tuple[str, Callable[[DoctorFacts], Judgement]]] = {
    "qemu-amd64": ("QEMU for x86-64", programs.qemu_amd64),
    "qemu-arm64": ("QEMU for 64-bit ARM", programs.qemu_arm64),
    "qemu-img": ("qemu-img", programs.qemu_img),
    "firmware": ("UEFI firmware", programs.firmware),
    "secure-boot": ("Secure Boot", programs.secure_boot),
    "swtpm": ("emulated TPM", programs.swtpm),
    "virtiofsd": ("shared directories", programs.virtiofsd),
    "kvm": ("accelerator", acceleration.kvm),
    "kvm-group": ("group of /dev/kvm", acceleration.kvm_group),
    "hypervisors": ("other hypervisors", acceleration.hypervisors),
    "network-rights": ("rights to networks", networking.network_rights),
    "nft": ("packet filters", networking.nft),
    "tun": ("taps", networking.tun),
    "bridge": ("bridges", networking.bridge),
    "reverse-path": ("check of sources", networking.reverse_path),
    "forwarding": ("other packet filters", networking.forwarding),
    "passt": ("passt", networking.passt),
    "libvirt-network": ("networks of libvirt", networking.libvirt_network),
    "namespaces": ("namespaces of machines", networking.namespaces),
    "port": ("port of the API server", surroundings.port),
    "directory": ("directory", surroundings.directory),
    "space": ("free space", surroundings.space),
    "inodes": ("free inodes", surroundings.inodes),
    "memory": ("memory", surroundings.memory),
    "control-groups": ("limits of machines", surroundings.control_groups),
    "cpu-shares": ("processor shares", surroundings.cpu_shares),
    "open-files": ("open files", surroundings.open_files),
    "landlock": ("Landlock", surroundings.landlock),
    "user-namespaces": ("user namespaces", surroundings.user_namespaces),
    "vhost": ("vhost", surroundings.vhost),
    "clock": ("clock", surroundings.clock),
    "access-control": ("SELinux and AppArmor", surroundings.access_control),
    "unit": ("unit of systemd", surroundings.unit),
}
_ORDER: Sequence[CheckState] = ("ok", "limited", "broken")


def judge(facts: DoctorFacts) -> tuple[HostCheck, ...]:
    return tuple(HostCheck(id=name, subject=subject, outcome=check(facts)) for name, (subject, check) in CHECKS.items())


def worst(checks: Iterable[HostCheck]) -> CheckState:
    """Return the worst state of all."""
    return max((each.outcome.state for each in checks), key=_ORDER.index, default="ok")


def shortfalls(checks: Iterable[HostCheck]) -> list[HostCheck]:
    """Return the checks with an outcome that is not ok."""
    return [each for each in checks if each.outcome.state != "ok"]


def at_start(checks: Iterable[HostCheck]) -> str:
    """Return the line that `paddock up` prints; "" if nothing that a machine may ask for is missing."""
    missing = dict.fromkeys(each.outcome.missing for each in shortfalls(checks) if each.outcome.missing)
    return f"not available here: {', '.join(missing)}; `paddock doctor` says why and what helps" if missing else ""


def condition_type(id: str) -> str:
    """Return the type of the Node's condition for a check."""
    return "".join(part.capitalize() for part in id.split("-")) + "Limited"
