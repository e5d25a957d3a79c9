"""The documents of a guest's first boot: what stands in the machine merged with its Secrets (docs/spec/virtrigaud.md 2.1.3)."""

from collections.abc import Mapping

from paddock.dialects.virtrigaud.kinds import userdata
from paddock.dialects.virtrigaud.kinds.machine import CloudInitMetaData, CloudInitUserData, Ignition
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.world import namespace_of

Secrets = Mapping[str, Mapping[str, bytes]]


def user_data(vm: VirtrigaudVirtualMachine, secrets: Secrets) -> bytes:
    """The user data: cloud-init documents as one, or the Ignition document; raises `Refusal` for a Secret without a document."""
    given = vm.spec.userData
    if given is None:
        return b""
    if given.cloudInit is not None:
        inline, stored = _documents(vm, given.cloudInit, secrets, userdata.USER_DATA_KEYS)
        return userdata.merged(inline, stored) if inline and stored else inline or stored
    if given.ignition is not None:
        inline, stored = _documents(vm, given.ignition, secrets, userdata.IGNITION_KEYS)
        return inline or stored
    return b""


def user_data_type(vm: VirtrigaudVirtualMachine) -> str:
    """The kind of the user data."""
    given = vm.spec.userData
    return "ignition" if given is not None and given.cloudInit is None and given.ignition is not None else "cloud-init"


def meta_data(vm: VirtrigaudVirtualMachine, secrets: Secrets) -> bytes:
    """The metadata; one text follows the other."""
    given = vm.spec.metaData
    if given is None or given.cloudInit is None:
        return b""
    inline, stored = _documents(vm, given.cloudInit, secrets, userdata.META_DATA_KEYS)
    return userdata.joined(inline, stored) if inline and stored else inline or stored


def _documents(
    vm: VirtrigaudVirtualMachine, source: CloudInitUserData | CloudInitMetaData | Ignition, secrets: Secrets, keys: tuple[str, ...]
) -> tuple[bytes, bytes]:
    inline = (source.inline or "").encode()
    if source.secretRef is None:
        return inline, b""
    name = source.secretRef.name
    values = secrets.get(name, {})
    key = userdata.key_in(values, keys)
    if key is None:
        raise Refusal(f"Secret {namespace_of(vm)}/{name} has none of the keys {', '.join(keys)}", fix="add the document under one of them")
    return inline, values[key]
