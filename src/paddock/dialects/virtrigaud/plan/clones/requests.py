"""The request for the clone of a machine."""

import ipaddress
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.dialects.virtrigaud.kinds.machine import VMNetworkRef
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmclone import VMClone
from paddock.dialects.virtrigaud.plan import hardware, reasons, requests, resizing
from paddock.dialects.virtrigaud.plan.clones import firstboot, judging
from paddock.dialects.virtrigaud.plan.guest import Secrets
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import namespace_of


class CloneParts(msgspec.Struct, frozen=True):
    """Everything that a clone's request is made from. `own` is the document of the source's guest."""

    source: VirtrigaudVirtualMachine
    target: VirtrigaudVirtualMachine
    provider: Provider
    vmclass: VMClass
    own: bytes = b""
    # the id of the snapshot that is cloned; empty: the machine as it is
    snapshot: str = ""
    secrets: Secrets = {}


def clone(vm_clone: VMClone, source_id: str, parts: CloneParts) -> m.CloneRequest:
    """The request for the clone; raises `Refusal` for what cannot be requested."""
    target = parts.target
    return m.CloneRequest(
        source_vm_id=source_id,
        target_name=target.metadata.name,
        linked=judging.options(vm_clone).type == judging.LINKED,
        class_json=class_json(target, parts.vmclass),
        placement_json=payloads.encode(requests.placement(target, parts.provider)),
        customize_json=_customization(vm_clone, parts),
        target_vm=m.ObjectIdentity(namespace=namespace_of(target), name=target.metadata.name),
    )


def class_json(machine: VirtrigaudVirtualMachine, vmclass: VMClass) -> str:
    """The class in both spellings: that of a create, and that of the manifest (docs/spec/virtrigaud.md 3.4)."""
    sizes = resizing.wanted(machine, vmclass)
    words: dict[str, Any] = msgspec.to_builtins(hardware.class_payload(vmclass.spec, sizes))
    manifest = {**to_data(vmclass.spec), "cpu": sizes.cpu, "memory": f"{sizes.memory_mib}Mi"}
    return payloads.encode_manifest({**manifest, **words})


def _customization(clone: VMClone, parts: CloneParts) -> str:
    wanted = judging.customization(clone)
    document = firstboot.document(wanted, parts.own, parts.secrets, namespace_of(clone))
    found: dict[str, Any] = {
        "snapshotId": parts.snapshot,
        "hostname": wanted.hostname,
        "networks": _addresses(parts) or None,
        "tags": wanted.tags,
    }
    if document:
        kind = "ignition" if firstboot.is_ignition(document) else "cloudInit"
        found["userData"] = {kind: {"inline": document.decode(errors="replace")}}
    found = {name: value for name, value in found.items() if value}
    return payloads.encode_manifest(found) if found else ""


def _addresses(parts: CloneParts) -> list[dict[str, Any]]:
    """The addresses of the new machine's cards. They reach the guest with the clone, so the source has to have the cards."""
    there = {each.name for each in parts.source.spec.networks or ()}
    found = []
    for nic in parts.target.spec.networks or ():
        if nic.ipAddress is None and nic.macAddress is None:
            continue
        if nic.name not in there:
            what = f"the card {nic.name} has an address and is not one of the source's, so the guest would not get it"
            raise Refusal(what, fix="name it as the source does, or leave its address to DHCP", reason=reasons.UNSUPPORTED)
        found.append(_address(nic))
    return found


def _address(vm_network_ref: VMNetworkRef) -> dict[str, Any]:
    mask = str(ipaddress.IPv4Network(f"0.0.0.0/{vm_network_ref.prefix or 24}").netmask) if vm_network_ref.ipAddress else None
    dns = [each.strip() for each in (vm_network_ref.dns or "").split(",") if each.strip()]
    made = {
        "name": vm_network_ref.name,
        "ipAddress": vm_network_ref.ipAddress,
        "subnetMask": mask,
        "gateway": vm_network_ref.gateway,
        "dns": dns or None,
        "macAddress": vm_network_ref.macAddress,
        "dhcp": None if vm_network_ref.ipAddress else True,
    }
    return {name: value for name, value in made.items() if value is not None}
