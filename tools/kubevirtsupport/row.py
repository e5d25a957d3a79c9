"""A line of the table."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paddock.kubevirt.translate.limits import Code

# Who carries a field out.
By = Literal["QEMU", "host", "networks", "volumes", "seed disk", "guest agent", "placement", "life cycle", "refused", "no effect"]
Changes = Mapping[str, Any]


@dataclass(frozen=True)
class SupportRow:
    """The support of a field below the instance's `spec`; one that ends in `.**` stands for everything below as well.

    `given` are changes to a small machine, by path. With them the command line holds `shows` (or lacks `lacks`), or the
    limit `shows` is reported.
    """

    field: str
    by: By
    text: str
    given: Changes = dataclasses.field(default_factory=dict)
    shows: str | Code = ""
    lacks: str = ""
    # KVM runs the guest of the example; otherwise it is emulated
    kvm: bool = False
    # annotations of the example
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # changes to what is found of the host
    host: Changes = dataclasses.field(default_factory=dict)


def disk(*, bus: str = "", kind: str = "disk", target: Changes | None = None, name: str = "d", **members: Any) -> dict[str, Any]:
    """A machine with a disk and its volume."""
    device = {"name": name, kind: {**({"bus": bus} if bus else {}), **(target or {})}, **members}
    return {"domain.devices.disks": [device], "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": "c"}}]}


def card(**members: Any) -> dict[str, Any]:
    """A machine with a network card."""
    name = members.pop("name", "default")
    network = members.pop("network", {"pod": {}})
    binding: Changes = {} if {"bridge", "sriov", "passtBinding", "binding"} & set(members) else {"masquerade": {}}
    interface = {"name": name, **binding, **members}
    return {"domain.devices.interfaces": [interface], "networks": [{"name": name, **network}]}


def volume(**source: Any) -> dict[str, Any]:
    """A machine with a volume and no word of a disk."""
    return {"volumes": [{"name": "v", **source}]}
