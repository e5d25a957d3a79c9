"""The differences of a clone from its source as KubeVirt's documents: host name, addresses, documents for its guest. Pure."""

import base64

import msgspec

from paddock.base.jsondata import Data, copied
from paddock.contract.description import USER_DATA, MachineDescription, is_ignition
from paddock.contract.payloads import ClassPayload, ImagePayload
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.wire import to_data
from paddock_drivers.kit import refusals
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.kubevirt import documents
from paddock_drivers.kubevirt.booting import BootDisk, BootKind
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings

_CARRIERS = ("cloudInitNoCloud", "cloudInitConfigDrive")
_CLOUD_INIT = "cloudinitdisk"


def secret_names(machine: Data) -> tuple[str, ...]:
    """The Secrets that the guest's documents of a machine are in."""
    found: dict[str, None] = {}
    for volume in machine["spec"]["template"]["spec"].get("volumes") or ():
        for carrier in _CARRIERS:
            for name in ("secretRef", "networkDataSecretRef"):
                reference = (volume.get(carrier) or {}).get(name) or {}
                if reference.get("name"):
                    found[str(reference["name"])] = None
    return tuple(found)


def copy_name(secret: str, source: str, target: str) -> str:
    """Return the name of a clone's own copy of a Secret."""
    return f"{target}{secret.removeprefix(source)}" if secret.startswith(f"{source}-") else f"{target}-{secret}"


def customized(machine: Data, customization: CloneCustomization, copies: dict[str, str], settings: KubeVirtDriverSettings) -> Data:
    """Return the merge patch of a clone's spec: off, with Secrets of its own, and with what is different about it."""
    spec = copied(machine["spec"])
    inner = spec["template"]["spec"]
    changes: Data = {"running": False} if "running" in spec else {"runStrategy": "Halted"}
    template: Data = {}
    if customization.hostname:
        template["hostname"] = customization.hostname
    volumes = [_with_own_secrets(each, copies) for each in inner.get("volumes") or ()]
    devices = inner.setdefault("domain", {}).setdefault("devices", {})
    disks, interfaces = list(devices.get("disks") or ()), [dict(each) for each in devices.get("interfaces") or ()]
    _address(customization, machine["metadata"]["name"], settings, volumes, disks, interfaces)
    if customization.user_data:
        _tell(customization.user_data, machine["metadata"]["name"], volumes, disks)
    if volumes != (inner.get("volumes") or []) or disks != (devices.get("disks") or []):
        template["volumes"] = volumes
        template["domain"] = {"devices": {"disks": disks}}
    if interfaces != (devices.get("interfaces") or []):
        template.setdefault("domain", {}).setdefault("devices", {})["interfaces"] = interfaces
    if template:
        changes["template"] = {"spec": template}
    return changes


def user_data_secret(machine: str, namespace: str, document: bytes) -> Secret | None:
    """Return the Secret with a clone's own document."""
    if not document:
        return None
    return Secret(
        apiVersion="v1",
        kind="Secret",
        metadata=ObjectMeta(name=f"{machine}-custom-userdata", namespace=namespace),
        type="Opaque",
        data={USER_DATA: base64.b64encode(document).decode()},
    )


def _with_own_secrets(volume: Data, copies: dict[str, str]) -> Data:
    changed = dict(volume)
    for carrier in _CARRIERS:
        if carrier not in changed:
            continue
        content = dict(changed[carrier])
        for name in ("secretRef", "networkDataSecretRef"):
            if (content.get(name) or {}).get("name") in copies:
                content[name] = {"name": copies[content[name]["name"]]}
        changed[carrier] = content
    return changed


def _address(
    customization: CloneCustomization,
    name: str,
    settings: KubeVirtDriverSettings,
    volumes: list[Data],
    disks: list[Data],
    interfaces: list[Data],
) -> None:
    """Give interfaces their addresses; the source's own are not the clone's."""
    carriers = [(each, kind) for each in volumes for kind in _CARRIERS if kind in each]
    for volume, kind in carriers:
        volume[kind] = {key: value for key, value in volume[kind].items() if key not in ("networkData", "networkDataSecretRef")}
    wanted = [each for each in customization.networks if any(each.name == nic["name"] for nic in interfaces)]
    strange = next((each.name for each in customization.networks if each not in wanted), None)
    if strange is not None:
        raise refusals.invalid(f'customization.networks: the machine has no interface "{strange}"')
    if not wanted:
        return
    hardware = ClassPayload(cpu=1, memory_mib=1)
    bridged = tuple(msgspec.structs.replace(each, bridge="any") for each in wanted)
    described = MachineDescription(name=name, hardware=hardware, image=ImagePayload(), networks=bridged)
    made = documents.build(described, BootDisk(kind=BootKind.CLAIM, name="any"), settings).machine.spec.template.spec
    macs = {each.name: each.macAddress for each in made.domain.devices.interfaces or ()}
    for nic in interfaces:
        if macs.get(nic["name"]):
            nic["macAddress"] = macs[nic["name"]]
    document = next((to_data(each) for each in made.volumes or () if each.cloudInitNoCloud is not None), None)
    if document is None:
        return
    data = document["cloudInitNoCloud"]["networkData"]
    if carriers and carriers[0][1] == "cloudInitNoCloud":
        carriers[0][0]["cloudInitNoCloud"]["networkData"] = data
    elif not carriers:
        volumes.append({"name": _CLOUD_INIT, "cloudInitNoCloud": document["cloudInitNoCloud"]})
        disks.append({"name": _CLOUD_INIT, "disk": {"bus": "virtio"}})


def _tell(document: bytes, name: str, volumes: list[Data], disks: list[Data]) -> None:
    """Put the clone's own document in place of the source's."""
    kind = "cloudInitConfigDrive" if is_ignition(document) else "cloudInitNoCloud"
    reference = {"name": f"{name}-custom-userdata"}
    for volume in volumes:
        for carrier in _CARRIERS:
            if carrier in volume:
                kept = {key: value for key, value in volume.pop(carrier).items() if key == "networkData"}
                volume[kind] = {**kept, "secretRef": reference}
                return
    volumes.append({"name": _CLOUD_INIT, kind: {"secretRef": reference}})
    disks.append({"name": _CLOUD_INIT, "disk": {"bus": "virtio"}})
