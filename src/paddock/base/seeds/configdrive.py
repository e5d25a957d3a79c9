"""cloud-init's ConfigDrive, version 2 of OpenStack's: a disk labelled `config-2`."""

import json
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from paddock.base.seeds.seed import Seed, SeedIdentity, Texts, numbered

LABEL = "config-2"
_FOLDER = "openstack/latest"


class TaggedDevice(Struct, frozen=True):
    """A device of the guest that the user gave a tag, so that the guest finds it."""

    kind: Literal["nic", "hostdev"]
    # "0000:01:00.0"
    address: str
    tags: tuple[str, ...] = ()
    mac: str = ""
    bus: str = "pci"


def seed(guest: SeedIdentity, texts: Texts, devices: Sequence[TaggedDevice] = ()) -> Seed:
    """The disk. `uuid` is what cloud-init compares to see whether this is a new machine."""
    said: dict[str, object] = {
        "instance_type": guest.instance_type,
        "instance_id": guest.name,
        "hostname": guest.hostname,
        "local_hostname": guest.hostname,
        "uuid": guest.uuid,
        "devices": [_device(one) for one in devices],
        "public_keys": numbered(guest.public_keys),
    }
    files = {
        f"{_FOLDER}/meta_data.json": json.dumps({key: value for key, value in said.items() if value}, ensure_ascii=False).encode(),
        f"{_FOLDER}/user_data": texts.user_data,
    }
    if texts.network_data:
        files[f"{_FOLDER}/network_data.json"] = texts.network_data
    return Seed(LABEL, files)


def _device(one: TaggedDevice) -> dict[str, object]:
    said: dict[str, object] = {"type": one.kind, "bus": one.bus, "address": one.address}
    if one.mac:
        said["mac"] = one.mac
    return {**said, "tags": list(one.tags)}
