"""Examines an endpoint for somebody who sets up a Provider: its release, templates, places and networks. For threads."""

from pyVmomi import vim

from paddock.contract.examination import ProviderFinding
from paddock_drivers.vsphere.target import VSphereTarget

_MOST_NAMES = 8


def examine(target: VSphereTarget) -> tuple[ProviderFinding, ...]:
    """Return what is there and what is missing."""
    about = target.connection.content.about
    findings = [ProviderFinding(check="release", text=f"{about.fullName}, API {about.apiVersion}")]
    if not target.connection.is_vcenter:
        text = "this is an ESXi host: it has no templates, and clones nothing"
        findings.append(ProviderFinding(check="endpoint", grade="warning", text=text, fix="name the vCenter that manages it"))
    findings += [_places(target, vim.Datacenter, "datacenters"), _places(target, vim.ComputeResource, "compute"), _templates(target)]
    findings.append(_places(target, vim.Network, "networks"))
    return tuple(findings)


def _places(target: VSphereTarget, kind: type[vim.ManagedEntity], what: str) -> ProviderFinding:
    names = [each.name for each in target.inventory.every(kind, ("name",))]
    if names:
        return ProviderFinding(check=what, text=_shown(names))
    return ProviderFinding(check=what, grade="bad", text="the account sees none", fix="give it a role on the datacenter, with propagation")


def _templates(target: VSphereTarget) -> ProviderFinding:
    rows = target.inventory.every(vim.VirtualMachine, ("name", "config.template"))
    names = [each.name for each in rows if each.get("config.template")]
    if names:
        return ProviderFinding(check="templates", text=_shown(names))
    fix = "convert a machine to a template, or use images"
    return ProviderFinding(check="templates", grade="warning", text="there is no template, or none that may be seen", fix=fix)


def _shown(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
