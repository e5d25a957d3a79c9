"""Examines a cluster for somebody who sets up a Provider: its release, rights, nodes, templates and storages."""

from paddock.contract.examination import ProviderFinding
from paddock_drivers.proxmox import placing
from paddock_drivers.proxmox.api import ProxmoxRefusal
from paddock_drivers.proxmox.capabilities import ProxmoxCapabilities
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxResource
from paddock_drivers.proxmox.config import ProxmoxMachineConfig

_ONLINE = "online"
_CONTENTS = (
    (placing.IMAGES, "bad", "no storage takes disks"),
    (placing.IMPORT, "warning", "no storage takes imports, so machines come from templates only"),
    (placing.ISO, "warning", "no storage takes ISO images, so guests get no user data beyond a user, keys and addresses"),
)
# What fails without them, and everything else goes on.
_OPTIONAL = {
    "VM.GuestAgent.Audit": "addresses of guests are not known",
    "VM.GuestAgent.Unrestricted": "commands of hooks cannot run in guests",
    "VM.Snapshot.Rollback": "machines cannot go back to snapshots",
    "Datastore.AllocateTemplate": "nothing can be uploaded or downloaded",
    "Datastore.Allocate": "images and documents cannot be deleted",
    "Sys.Audit": "limits in MHz and facts of hosts are not known",
    "Sys.AccessNetwork": "images cannot be downloaded",
    "SDN.Use": "machines cannot be put on networks",
}
_SINCE: dict[str, tuple[int, int]] = {
    "VM.GuestAgent.Audit": (9, 0),
    "VM.GuestAgent.Unrestricted": (9, 0),
    "Sys.AccessNetwork": (8, 1),
    "SDN.Use": (8, 0),
}


async def examine(cluster: ProxmoxCluster, capabilities: ProxmoxCapabilities) -> tuple[ProviderFinding, ...]:
    """Return what is there and what is missing."""
    release = await cluster.release()
    resources = await cluster.resources()
    findings = [ProviderFinding(check="release", text=f"Proxmox VE {release[0]}.{release[1]}")]
    findings += await _rights(release, capabilities)
    findings += _nodes(resources, cluster.settings.nodes)
    findings += _storages(resources)
    findings += await _templates(cluster, resources)
    return tuple(findings)


async def _rights(release: tuple[int, int], capabilities: ProxmoxCapabilities) -> list[ProviderFinding]:
    missing = await capabilities.missing_of(tuple(each for each in _OPTIONAL if release >= _SINCE.get(each, (0, 0))))
    fix = "give the user or token a role with it (`pveum role modify`, `pveum acl modify`)"
    found = [ProviderFinding(check="rights", grade="warning", text=f"without {each} {_OPTIONAL[each]}", fix=fix) for each in missing]
    return found or [ProviderFinding(check="rights", text="the user or token has all privileges that the driver uses")]


def _nodes(resources: tuple[ProxmoxResource, ...], allowed: tuple[str, ...]) -> list[ProviderFinding]:
    nodes = {each.node: each.status for each in resources if each.type == "node"}
    unknown = [each for each in allowed if each not in nodes]
    down = sorted(name for name, status in nodes.items() if status != _ONLINE)
    found = [ProviderFinding(check="nodes", text=", ".join(sorted(set(nodes) - set(down))))]
    if down:
        text = f"{', '.join(down)} are not online; their machines cannot be reached"
        found.append(ProviderFinding(check="nodes", grade="warning", text=text, fix="start them, or look at the cluster's network"))
    if unknown:
        text = f"PVE_NODE_SELECTOR names {', '.join(unknown)}, which the cluster does not have"
        found.append(ProviderFinding(check="nodes", grade="bad", text=text, fix="correct the names"))
    return found


def _storages(resources: tuple[ProxmoxResource, ...]) -> list[ProviderFinding]:
    found = []
    for content, grade, text in _CONTENTS:
        names = sorted({each.storage for each in placing.storages(resources, content)})
        fix = f'add "{content}" to the content of a storage (Datacenter, Storage)'
        if names:
            found.append(ProviderFinding(check=f"storage for {content}", text=", ".join(names)))
        elif grade == "bad":
            found.append(ProviderFinding(check=f"storage for {content}", grade="bad", text=text, fix=fix))
        else:
            found.append(ProviderFinding(check=f"storage for {content}", grade="warning", text=text, fix=fix))
    return found


async def _templates(cluster: ProxmoxCluster, resources: tuple[ProxmoxResource, ...]) -> list[ProviderFinding]:
    templates = [each for each in await cluster.machines(resources) if each.template]
    if not templates:
        text = "there is no template, or none that may be seen"
        return [ProviderFinding(check="templates", grade="warning", text=text, fix="convert a machine to a template, or use images")]
    found = [ProviderFinding(check="templates", text=", ".join(f"{each.vmid} ({each.name})" for each in templates))]
    for each in templates:
        try:
            config = await cluster.config(each.node, each.vmid)
        except ProxmoxRefusal:
            continue
        found += _template(config)
    return found


def _template(config: ProxmoxMachineConfig) -> list[ProviderFinding]:
    """Name what machines from a template would lack."""
    lacks = []
    if not config.cloud_init:
        lacks.append(("has no cloud-init drive; machines get one", "add a cloud-init drive to it"))
    if config.text("agent").partition(",")[0] not in ("1", "enabled=1"):
        lacks.append(("has no guest agent switched on; addresses are not known", "switch the option QEMU Guest Agent on"))
    if config.root is None:
        lacks.append(("has no disk to boot from", "give it a disk"))
    return [
        ProviderFinding(check="templates", grade="warning", text=f"{config.vmid} ({config.name}) {text}", fix=fix) for text, fix in lacks
    ]
