"""What is applied for a machine, as plain data: what the translation gives, in the form in which the API keeps it."""

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt import virtualmachine as kubevirt
from paddock.meta.objects import Resource
from paddock.meta.wire import to_data
from paddock.plan.stakater import bindings
from paddock.plan.stakater.bindings import BoundMachine

Data = dict[str, Any]


def machine_of(resources: Iterable[Resource]) -> kubevirt.VirtualMachine:
    """The generated machine among everything that was made."""
    return next(each for each in resources if isinstance(each, kubevirt.VirtualMachine))


def noted(machine: kubevirt.VirtualMachine, bound: BoundMachine) -> kubevirt.VirtualMachine:
    """The machine that says which bindings took the place of others."""
    if not bound.instead:
        return machine
    notes = {**(machine.metadata.annotations or {}), bindings.FALLBACK: bound.note}
    return msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, annotations=notes))


def data_of(resource: Resource) -> Data:
    """As it is applied. The values of a Secret stand in `data`: `stringData` is not kept, so nobody could own it."""
    data = to_data(resource)
    if isinstance(resource, Secret):
        values = {name: base64.b64encode(text.encode()).decode() for name, text in (data.pop("stringData", None) or {}).items()}
        data["data"] = {**(data.get("data") or {}), **values}
    return data
