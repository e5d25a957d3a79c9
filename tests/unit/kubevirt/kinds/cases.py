"""The form of a case: one object that a rule refuses, and one beside it that it accepts."""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.kubernetes.schema.finding import CauseType, Severity

VM, VMI = "VirtualMachine", "VirtualMachineInstance"


class Case(msgspec.Struct, frozen=True):
    """A row of the table of docs/spec/kubevirt.md section 2.11, or a part of one. P stands for the hardware of the machine."""

    number: int
    label: str
    # changes of a good machine that make it a bad one, and the answer
    bad: Mapping[str, Any]
    field: str
    words: str
    # changes that are accepted
    good: Mapping[str, Any]
    cause: CauseType = CauseType.INVALID
    severity: Severity = Severity.ERROR
    settings: Mapping[str, Any] = {}
    good_settings: Mapping[str, Any] | None = None
    kinds: tuple[str, ...] = (VM, VMI)


def disk(**members: Any) -> dict[str, Any]:
    """The changes that give the machine a second disk."""
    return {"P.domain.devices.disks[1]": {"name": "data", **members}, "P.volumes[1]": {"name": "data", "emptyDisk": {"capacity": "1Gi"}}}


def volume(**source: Any) -> dict[str, Any]:
    """The changes that give the machine a second disk with this volume."""
    return {"P.domain.devices.disks[1]": {"name": "data"}, "P.volumes[1]": {"name": "data", **source}}


def network(network: Mapping[str, Any], **interface: Any) -> dict[str, Any]:
    """The changes that give the machine a second card."""
    return {
        "P.domain.devices.interfaces[1]": {"name": "second", **interface},
        "P.networks[1]": {"name": "second", **network},
    }
