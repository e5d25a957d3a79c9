"""Examines a hypervisor for somebody who sets up a Provider: its release, accelerator, firmware, pools and networks."""

from typing import Any

from paddock.contract.examination import ProviderFinding
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.hypervisor import Hypervisor


async def examine(connection: LibvirtConnection, hypervisor: Hypervisor) -> tuple[ProviderFinding, ...]:
    """Return what is there and what is missing."""
    found = await hypervisor.abilities()
    release, pools, networks = await connection.run(_seen)
    findings = [
        ProviderFinding(check="release", text=f"libvirt {release}, {found.version or found.type}"),
        _accelerator(found),
        _firmware(found),
    ]
    for what, names, fix in (
        ("pools", pools, "define and start one: `virsh pool-define-as default dir --target /var/lib/libvirt/images`"),
        ("networks", networks, "start one: `virsh net-start default`; or name bridges in the networks of machines"),
    ):
        on = sorted(name for name, active in names.items() if active)
        off = sorted(set(names) - set(on))
        if on:
            findings.append(ProviderFinding(check=what, text=", ".join(on)))
        if off or not on:
            text = f"{', '.join(off)} not started" if off else "there is none"
            findings.append(ProviderFinding(check=what, grade="warning", text=text, fix=fix))
    return tuple(findings)


def _accelerator(hypervisor_abilities: HypervisorAbilities) -> ProviderFinding:
    if hypervisor_abilities.accelerated:
        return ProviderFinding(check="accelerator", text="KVM")
    text = "the host has no KVM that libvirt can use: guests run many times slower"
    return ProviderFinding(
        check="accelerator", grade="warning", text=text, fix="switch virtualization on in the host's firmware, and load kvm"
    )


def _firmware(hypervisor_abilities: HypervisorAbilities) -> ProviderFinding:
    there = {"UEFI": hypervisor_abilities.efi, "Secure Boot": hypervisor_abilities.secure_boot, "TPM": hypervisor_abilities.tpm}
    missing = [name for name, is_there in there.items() if not is_there]
    if not missing:
        return ProviderFinding(check="firmware", text="BIOS, UEFI, Secure Boot and TPM")
    text = f"machines with {', '.join(missing)} are refused"
    return ProviderFinding(check="firmware", grade="warning", text=text, fix="install the packages ovmf and swtpm-tools on the host")


def _seen(conn: Any) -> tuple[str, dict[str, bool], dict[str, bool]]:
    number = conn.getLibVersion()
    release = f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"
    pools = {each.name(): bool(each.isActive()) for each in conn.listAllStoragePools(0)}
    return release, pools, {each.name(): bool(each.isActive()) for each in conn.listAllNetworks(0)}
