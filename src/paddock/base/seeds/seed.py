"""Shared parts of all seeds: a disk by its label and its files, and the guest's metadata for cloud-init."""

from collections.abc import Mapping

from msgspec import Struct

from paddock.base.seeds import iso
from paddock.base.seeds.errors import SeedError


class Seed(Struct, frozen=True):
    """A disk with few small files."""

    label: str
    files: Mapping[str, bytes]

    def image(self) -> bytes:
        """The disk, the same bytes for the same files."""
        return iso.build(self.label, self.files)


class SeedIdentity(Struct, frozen=True):
    """The identity of the guest. A guest that finds another `uuid` takes itself for a new machine and sets itself up again."""

    # of its firmware
    uuid: str
    # "name.namespace"
    name: str
    hostname: str = ""
    instance_type: str = ""
    # for the guest's default user
    public_keys: tuple[str, ...] = ()


class Texts(Struct, frozen=True):
    """The user's data for cloud-init, passed on unchanged."""

    user_data: bytes = b""
    network_data: bytes = b""


_USER_KEYS = ("userdata", "userData")
_NETWORK_KEYS = ("networkdata", "networkData")


def user_data(secret: Mapping[str, bytes]) -> bytes:
    """The user data of a Secret, in either spelling of its key."""
    return _first(secret, _USER_KEYS)


def network_data(secret: Mapping[str, bytes]) -> bytes:
    """The network data of a Secret, in either spelling of its key."""
    return _first(secret, _NETWORK_KEYS)


def _first(secret: Mapping[str, bytes], keys: tuple[str, ...]) -> bytes:
    for key in keys:
        if key in secret:
            return secret[key]
    raise SeedError("cannot find cloud-init's data in the Secret", why=f"it has no key {' or '.join(keys)}", fix="add one of them")


def public_keys(secret: Mapping[str, bytes]) -> tuple[str, ...]:
    """The SSH keys of a Secret: every line of every key that is no comment, each once."""
    lines = (line.strip() for key in sorted(secret) for line in secret[key].decode(errors="replace").splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def passwords(secret: Mapping[str, bytes]) -> dict[str, str]:
    """User -> password, as a Secret for passwords has them; an editor's last line end is no part of a password."""
    return {user: text.decode(errors="replace").removesuffix("\n").removesuffix("\r") for user, text in sorted(secret.items())}


def numbered(keys: tuple[str, ...]) -> dict[str, str]:
    """SSH keys as cloud-init's metadata has them."""
    return {str(number): key for number, key in enumerate(keys)}
