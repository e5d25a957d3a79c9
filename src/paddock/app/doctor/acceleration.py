"""Judgement of the accelerator and of what stands in its way. Pure."""

from paddock.app.doctor.check import HostChange, Judgement, limited, ok
from paddock.app.doctor.facts import DoctorFacts

_EMULATED = "guests are emulated: they work, and are five to thirty times slower"
_MISSING = "KVM (guests are emulated, and slow)"
_NAMES = {"bios": "BIOS", "efi": "UEFI", "smm": "Secure Boot"}


def kvm(facts: DoctorFacts) -> Judgement:
    """KVM: there, permitted, and really working."""
    found = facts.kvm
    detail = f": {found.detail}" if found.detail else ""
    if found.state == "real":
        return _real(facts)
    if found.state == "forbidden":
        return limited(f"/dev/kvm may not be used{detail}", _EMULATED, _permit(facts), _MISSING)
    if found.state == "absent" and found.module:
        change = HostChange(("modprobe", found.module), f"load the kernel module {found.module}")
        fix = f"load the kernel module: modprobe {found.module}; if that fails, enable virtualization in the firmware setup"
        return limited("there is no /dev/kvm, though the processor has virtualization", _EMULATED, fix, _MISSING, change)
    if found.state == "absent":
        fix = "in a virtual machine, enable nested virtualization on its host; otherwise enable VT-x or AMD-V in the firmware setup"
        return limited("this host has no /dev/kvm", _EMULATED, fix, _MISSING)
    if found.state == "emulated":
        fix = "use a host whose processor has virtualization; nothing on this one helps"
        return limited(f"/dev/kvm interprets instructions in software{detail}", f"Paddock does not use it, and {_EMULATED}", fix, _MISSING)
    fix = "end other hypervisors, reload the kernel module, or use another host"
    return limited(f"/dev/kvm is there and does not work{detail}", f"Paddock does not use it, and {_EMULATED}", fix, _MISSING)


def _real(facts: DoctorFacts) -> Judgement:
    # Firmware that is not installed is another check's.
    lacking = [kind for kind, why in sorted(facts.kvm.why.items()) if kind not in facts.kvm.works and "not installed" not in why]
    lacking = [kind for kind in lacking if "has no" not in facts.kvm.why[kind]]
    if not lacking:
        return ok("KVM works")
    names = " and ".join(_NAMES.get(kind, kind) for kind in lacking)
    reasons = "; ".join(facts.kvm.why[kind] for kind in lacking)
    fix = "update the kernel of this host, or of the host that it is a guest of"
    return limited(f"KVM works, but not for guests with {names}: {reasons}", f"guests with {names} are emulated", fix)


def kvm_group(facts: DoctorFacts) -> Judgement:
    """The user's right to /dev/kvm."""
    user, group = facts.user, facts.kvm.group
    name = user.sudo or user.name
    if facts.kvm.state == "absent" or not group:
        return ok("not needed: there is no /dev/kvm, or no group owns it")
    if user.is_root and not user.sudo:
        return ok("root needs no group")
    if group in user.groups:
        return ok(f"{name} is in the group {group}")
    if facts.kvm.state != "forbidden" and not user.is_root:
        return ok(f"not needed: {name} may use /dev/kvm")
    if user.is_root and user.sudo:
        effect = f"a server of {name} cannot use KVM; root's can"
    else:
        effect = "this user cannot use KVM"
    change = HostChange(("usermod", "-aG", group, name), f"add {name} to the group {group}; it counts from the next login")
    return limited(f"{name} is not in the group {group}", effect, _permit(facts), change=change)


def _permit(facts: DoctorFacts) -> str:
    group, name = facts.kvm.group, facts.user.sudo or facts.user.name
    if facts.user.is_root and not facts.user.sudo:
        return "give the container the device: docker run --device /dev/kvm"
    if not group or group == "root":
        return "give /dev/kvm to the group kvm (udev does it where systemd runs), and join it"
    return f"sudo usermod -aG {group} {name}, then log in again"


def hypervisors(facts: DoctorFacts) -> Judgement:
    """Modules of other hypervisors, which take the processor's virtualization for themselves."""
    loaded = facts.kernel.hypervisors
    if not loaded:
        return ok("no other hypervisor's modules are loaded")
    names = ", ".join(loaded)
    effect = "while their machines run, KVM may fail to start guests"
    return limited(
        f"modules of other hypervisors are loaded: {names}", effect, f"shut their machines down, or unload them: modprobe -r {names}"
    )
