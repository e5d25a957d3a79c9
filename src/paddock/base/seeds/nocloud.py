"""cloud-init's NoCloud: a disk labelled `cidata`."""

import json

from paddock.base.seeds.seed import Seed, SeedIdentity, Texts, numbered

LABEL = "cidata"


def seed(guest: SeedIdentity, texts: Texts) -> Seed:
    """The disk. cloud-init takes it for one only with both `meta-data` and `user-data`, so an empty text is a file, too."""
    said: dict[str, object] = {"instance-type": guest.instance_type, "instance-id": guest.uuid, "local-hostname": guest.hostname}
    said["public-keys"] = numbered(guest.public_keys)
    files = {
        "meta-data": json.dumps({key: value for key, value in said.items() if value}, ensure_ascii=False).encode(),
        "user-data": texts.user_data,
    }
    if texts.network_data:
        files["network-config"] = texts.network_data
    return Seed(LABEL, files)
