"""Documents for a guest: settings of a machine that cloud-init's VMware data source and Ignition read in the guest. Pure.

vSphere shows these settings to whoever may read the machine's configuration, so rights in vCenter guard them.
"""

import base64
import json
from collections.abc import Iterable
from typing import Any

import yaml
from pyVmomi import vim

from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import cloudinit, refusals

_USER, _META = "guestinfo.userdata", "guestinfo.metadata"
_IGNITION = "guestinfo.ignition.config.data"
_ENCODING, _BASE64 = ".encoding", "base64"
_HOST = "local-hostname"
# All settings that a guest reads.
KEYS = tuple(key + end for key in (_USER, _META, _IGNITION) for end in ("", _ENCODING))


def settings(id: str, hostname: str, user_data: bytes, meta_data: bytes, networks: tuple[NetworkPayload, ...] = ()) -> dict[str, str]:
    """Return the settings for a guest. A network counts when its card's MAC address is known, if it says more than DHCP."""
    if cloudinit.is_ignition(user_data):
        return _encoded(_IGNITION, user_data)
    own = _mapping(meta_data)
    found = {"instance-id": id, **({} if _HOST in own or "hostname" in own else {_HOST: hostname}), **own}
    known = tuple(each for each in networks if each.mac_address or not cloudinit.speaks(each))
    if network := cloudinit.network_config(known):
        found["network"] = yaml.safe_load(network)
    meta = _encoded(_META, json.dumps(found, default=str).encode())
    return {**meta, **(_encoded(_USER, user_data) if user_data else {})}


def metadata(extra: Iterable[vim.option.OptionValue] | None) -> bytes:
    """Return the metadata that a machine has."""
    has = {each.key: str(each.value) for each in extra or ()}
    try:
        return base64.b64decode(has.get(_META, ""), validate=True)
    except ValueError:
        return b""


def _encoded(key: str, text: bytes) -> dict[str, str]:
    return {key: base64.b64encode(text).decode(), key + _ENCODING: _BASE64}


def _mapping(text: bytes) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        found = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError):
        raise refusals.invalid("the metadata of the machine is no YAML") from None
    if not isinstance(found, dict):
        raise refusals.invalid("the metadata of the machine is no mapping")
    return found
