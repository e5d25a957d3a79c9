"""The user data of the guest's first boot: the volume that carries it, and the Secret that it may need."""

import base64
import dataclasses

import yaml

from paddock.base import names
from paddock.dialects.virtrigaud.kinds import userdata
from paddock.dialects.virtrigaud.kinds.machine import CloudInitMetaData, Ignition
from paddock.dialects.virtrigaud.kinds.machine import CloudInitUserData as Documents
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.disks import CLOUD_INIT
from paddock.dialects.virtrigaud.translate.resolved import VirtrigaudInputs
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta import cloudconfig
from paddock.kubernetes.meta.redaction import HIDDEN
from paddock.kubevirt.kinds.devices import Disk, DiskTarget
from paddock.kubevirt.kinds.volumes import CloudInitSource, Volume, VolumeNameReference

# The keys under which KubeVirt reads a Secret, and what may stand in the machine itself.
USER_DATA, NETWORK_DATA = "userdata", "networkdata"
INLINE_BYTES = 2048
# A guest with network data only gets nothing else.
NOTHING_TO_SAY = "#cloud-config\n{}\n"
_HOSTNAMES = ("local-hostname", "hostname")


@dataclasses.dataclass(frozen=True)
class GuestUserData:
    """User data: its text, or the Secret that has it as KubeVirt reads it. `origin` is the Secret a text comes from."""

    text: bytes = b""
    secret: str = ""
    origin: str = ""


@dataclasses.dataclass(frozen=True)
class GuestData:
    """The disk for the guest with its volume, and the Secret that the machine then needs."""

    disk: Disk
    volume: Volume
    secret: Secret | None


def has_ignition(resolved: VirtrigaudInputs) -> bool:
    """Return whether the guest reads Ignition, and so no cloud-init."""
    given = resolved.vm.spec.userData
    return given is not None and given.ignition is not None and given.cloudInit is None


def tell(resolved: VirtrigaudInputs, network_data: str | None) -> GuestData | None:
    """The documents of the machine; None when there is nothing to say."""
    given = resolved.vm.spec.userData
    document = None
    if given is not None and given.cloudInit is not None:
        document = _cloud_init(resolved, given.cloudInit)
    elif given is not None and given.ignition is not None:
        document = _ignition(resolved, given.ignition)
    if document is None and network_data is not None:
        document = GuestUserData(NOTHING_TO_SAY.encode())
    return None if document is None else _carried(resolved, document, network_data)


def _carried(resolved: VirtrigaudInputs, document: GuestUserData, network_data: str | None) -> GuestData:
    name = marks.cloud_init_secret(resolved.name)
    held: dict[str, bytes] = {}
    user, reference = None, document.secret
    if not reference and (document.origin or len(document.text) > INLINE_BYTES):
        held[USER_DATA], reference = document.text, name
    elif not reference:
        user = document.text.decode()
    network, network_reference = network_data, ""
    if network_data is not None and len(network_data.encode()) > INLINE_BYTES:
        held[NETWORK_DATA], network, network_reference = network_data.encode(), None, name
    content = CloudInitSource(
        userData=user,
        secretRef=VolumeNameReference(name=reference) if reference else None,
        networkData=network,
        networkDataSecretRef=VolumeNameReference(name=network_reference) if network_reference else None,
    )
    disk_name = marks.free(CLOUD_INIT, {disk.name for disk in resolved.vm.spec.disks or ()})
    disk = Disk(name=disk_name, disk=DiskTarget(bus="virtio"))
    # Ignition looks at a config drive; it is user data there, whatever its size, and needs no feature gate.
    if has_ignition(resolved):
        volume = Volume(name=disk_name, cloudInitConfigDrive=content)
    else:
        volume = Volume(name=disk_name, cloudInitNoCloud=content)
    return GuestData(disk, volume, _secret(resolved, name, held, document.origin) if held else None)


def _secret(resolved: VirtrigaudInputs, name: str, held: dict[str, bytes], origin: str) -> Secret:
    annotations = {marks.SECRET: marks.as_json({"name": origin})} if origin else None
    return Secret(
        apiVersion="v1",
        kind="Secret",
        metadata=marks.meta(resolved.vm, name, resolved.rendering.product, annotations),
        type="Opaque",
        data={key: base64.b64encode(value).decode() for key, value in held.items()},
    )


def _from_secret(resolved: VirtrigaudInputs, path: tuple[str, ...], name: str, keys: tuple[str, ...]) -> tuple[str, bytes] | None:
    """The key of a Secret that has the document, and the document."""
    values = resolved.secret(resolved.namespace, name, ("spec", *path, "secretRef", "name"))
    if values is None:
        return None
    key = userdata.key_in(values, keys)
    if key is None:
        why = f'Secret "{name}" has none of the keys {", ".join(keys)}'
        resolved.account.lose((*path, "secretRef"), {"name": name}, why, "the guest does not get it")
        return None
    resolved.account.took(*path, "secretRef", "name")
    return key, values[key]


def _absent(resolved: VirtrigaudInputs, path: tuple[str, ...], name: str) -> GuestUserData:
    """The Secret is not among the objects: KubeVirt may find it, under its own key."""
    instead = f"a Secret of this name has to have the whole document under {USER_DATA}"
    resolved.account.lose((*path, "secretRef", "name"), name, f'Secret "{name}" is not among the objects', instead)
    return GuestUserData(secret=name)


def _cloud_init(resolved: VirtrigaudInputs, documents: Documents) -> GuestUserData | None:
    path, inline = ("userData", "cloudInit"), documents.inline
    resolved.account.took(*path, "inline")
    if documents.secretRef is None:
        return GuestUserData(inline.encode()) if inline else None
    name = documents.secretRef.name
    known = resolved.knows_secret(name)
    found = _from_secret(resolved, path, name, userdata.USER_DATA_KEYS)
    if found is None and not known and not inline:
        return _absent(resolved, path, name)
    if found is None:
        if not known:
            instead = "the guest gets what is written in the machine only"
            resolved.account.lose((*path, "secretRef", "name"), name, f'Secret "{name}" is not among the objects', instead)
        return GuestUserData(inline.encode()) if inline else None
    key, text = found
    if inline:
        return GuestUserData(userdata.merged(inline.encode(), text), origin=name)
    return GuestUserData(secret=name) if key == USER_DATA else GuestUserData(text, origin=name)


def _ignition(resolved: VirtrigaudInputs, ignition: Ignition) -> GuestUserData | None:
    path = ("userData", "ignition")
    resolved.account.took(*path, "inline")
    if ignition.inline or ignition.secretRef is None:
        return GuestUserData(ignition.inline.encode()) if ignition.inline else None
    name = ignition.secretRef.name
    known = resolved.knows_secret(name)
    found = _from_secret(resolved, path, name, userdata.IGNITION_KEYS)
    if found is None:
        return None if known else _absent(resolved, path, name)
    key, text = found
    return GuestUserData(secret=name) if key == USER_DATA else GuestUserData(text, origin=name)


def hostname(resolved: VirtrigaudInputs) -> str | None:
    """The host name that the metadata gives; KubeVirt makes all other metadata itself."""
    given = resolved.vm.spec.metaData.cloudInit if resolved.vm.spec.metaData is not None else None
    if given is None:
        return None
    text, is_carried = _meta_data(resolved, given)
    said = [_mapping(text).get(key) for key in _HOSTNAMES]
    usable = next((name for name in said if isinstance(name, str) and names.is_label(name)), None)
    if text != spoken_hostname(usable) or not is_carried:
        why = "KubeVirt makes the metadata of a machine itself"
        instead = f"the guest's host name is {usable}, and nothing else reaches it" if usable else "nothing of it reaches the guest"
        resolved.account.lose(("metaData", "cloudInit"), HIDDEN, why, instead)
    else:
        resolved.account.took("metaData", "cloudInit", "inline")
    return usable


def spoken_hostname(name: str | None) -> str:
    """Metadata that says the host name and nothing else."""
    return f"local-hostname: {name}\n" if name else ""


def _meta_data(resolved: VirtrigaudInputs, cloud_init_meta_data: CloudInitMetaData) -> tuple[str, bool]:
    """The text of the metadata, and whether all of it can be in the machine."""
    inline = cloud_init_meta_data.inline or ""
    if cloud_init_meta_data.secretRef is None:
        return inline, True
    found = _from_secret(resolved, ("metaData", "cloudInit"), cloud_init_meta_data.secretRef.name, userdata.META_DATA_KEYS)
    if found is None:
        return inline, False
    text = found[1].decode(errors="replace")
    return (userdata.joined(inline.encode(), text.encode()).decode() if inline else text), False


def _mapping(text: str) -> dict[str, object]:
    if cloudconfig.mapping_problem(text):
        return {}
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
        return {}
    try:
        data = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
