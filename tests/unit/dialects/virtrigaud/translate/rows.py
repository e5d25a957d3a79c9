"""A row of the mapping: what is changed in the scene, what then stands where, and what is lost."""

from typing import Any, NamedTuple

from tests.unit.dialects.virtrigaud.translate.making import Changes


class Row(NamedTuple):
    """`machine` and `config` are paths and values in the KubeVirt machine and in the only definition's CNI document; `lost` are
    objects and fields of all losses, in any order."""

    what: str
    changes: dict[str, Changes]
    machine: dict[str, Any] = {}
    config: dict[str, Any] = {}
    lost: tuple[str, ...] = ()


VM = "VirtualMachine"
CLASS, IMAGE, NETWORK, PROVIDER = "VMClass", "VMImage", "VMNetworkAttachment", "Provider"
# Places in the machine.
SPEC = "spec.template.spec"
DOMAIN = f"{SPEC}.domain"
DEVICES = f"{DOMAIN}.devices"
ROOT = "spec.dataVolumeTemplates.0.spec"
DATA = "spec.dataVolumeTemplates.1.spec"
PLUGIN = "plugins.0"


def by_class(what: str, path: str, value: Any, /, *lost: str, **machine: Any) -> Row:
    """A row that changes one field of the class."""
    return Row(what, {CLASS: {path: value}}, {**machine}, lost=tuple(f"VMClass/small spec{each}" for each in lost))
