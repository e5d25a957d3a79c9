"""Documents for a guest: by the cluster's own cloud-init drive where that can say all of it, else by a disk of ours. Pure.

The cluster's drive carries a user, keys, a password, addresses and the name; it moves with the machine. Everything else goes on an ISO
image with cloud-init's NoCloud files or an Ignition config, which is uploaded to a storage for ISO images. Snippets cannot be uploaded.
"""

import hashlib
from typing import Any
from urllib.parse import quote

import msgspec
import yaml

from paddock.contract.description import MachineDescription
from paddock_drivers.kit import cloudinit, refusals
from paddock_drivers.kit.cloudinit import GuestDocuments
from paddock_drivers.proxmox import networking
from paddock_drivers.proxmox.api import FormValue

_HEADER = b"#cloud-config"
# What the cluster's own drive says anyway, or can be made to say.
_PLAIN = frozenset({"user", "ssh_authorized_keys", "package_upgrade", "hostname", "fqdn", "manage_etc_hosts", "preserve_hostname"})


def plain(document: bytes) -> dict[str, Any] | None:
    """Return what a document says if the cluster's own drive can say all of it; None otherwise."""
    if not document.strip():
        return {}
    if not document.lstrip().startswith(_HEADER):
        return None
    try:
        found = yaml.load(document, Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return None
    if found is None:
        return {}
    if not isinstance(found, dict) or not set(found) <= _PLAIN or not isinstance(found.get("user") or "", str):
        return None
    keys = found.get("ssh_authorized_keys") or []
    spoken = isinstance(keys, list) and all(isinstance(each, str) for each in keys)
    others = found.get("hostname") or found.get("fqdn") or found.get("preserve_hostname") or found.get("manage_etc_hosts") is False
    return None if not spoken or others else found


def is_native(description: MachineDescription) -> bool:
    """Return whether the cluster's own cloud-init drive does for a machine."""
    needs_document = any(nic.routes or nic.ip_policy == cloudinit.NO_ADDRESS for nic in description.networks)
    return not needs_document and not description.meta_data and plain(description.user_data) is not None


def native(description: MachineDescription, release: tuple[int, int]) -> dict[str, FormValue]:
    """Return the keys of the cluster's own cloud-init drive."""
    said = plain(description.user_data) or {}
    form: dict[str, FormValue] = dict(networking.addresses(description.networks))
    if said.get("user"):
        form["ciuser"] = str(said["user"])
    if said.get("ssh_authorized_keys"):
        form["sshkeys"] = quote("\n".join(each.strip() for each in said["ssh_authorized_keys"]), safe="")
    if release[0] >= 8 and (description.user_data.strip() or said):
        form["ciupgrade"] = bool(said.get("package_upgrade"))
    return form


def disk(description: MachineDescription, uuid: str, macs: tuple[tuple[str, str], ...]) -> bytes:
    """Return the ISO image with a machine's documents."""
    cards = tuple(
        msgspec.structs.replace(nic, name=name, mac_address=mac) for nic, (name, mac) in zip(description.networks, macs, strict=True)
    )
    hostname = description.name.partition(".")[0]
    documents = GuestDocuments(
        instance=uuid, hostname=hostname, networks=cards, user_data=description.user_data, meta_data=description.meta_data
    )
    if cloudinit.is_ignition(description.user_data) and any(each.static_ip for each in description.networks):
        raise refusals.not_supported("a static address cannot be given beside Ignition", fix="write it into the Ignition document")
    return cloudinit.image(documents)


def disk_name(vmid: int, image: bytes) -> str:
    """Return the name of a machine's document disk: another one for other documents."""
    return f"paddock-{vmid}-{hashlib.sha256(image).hexdigest()[:16]}.iso"
