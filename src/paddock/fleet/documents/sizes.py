"""Machines of an input against the instancetypes and preferences of the same input.

Only these are kept: an input may be long, and few of its machines name either.
"""

from collections.abc import Iterator
from typing import Any

from paddock.fleet.documents.objects import InputObject, LocatedFinding, place_of
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings

_GROUP = "instancetype.kubevirt.io"
# Where each kind has the spec of a machine.
_MACHINES = {"VirtualMachine": ("spec",), "VirtualMachinePool": ("spec", "virtualMachineTemplate", "spec")}


class SizeChecks:
    def __init__(self, settings: AdmissionSettings) -> None:
        self._settings = settings
        self._known: list[Resource] = []
        # with the number of the list of findings that theirs join
        self._machines: list[tuple[int, InputObject]] = []

    def add(self, number: int, subject: InputObject) -> None:
        kind, value = subject.admission.kind, subject.admission.value
        if kind is None or not isinstance(value, Resource):
            return
        if kind.group == _GROUP:
            self._known.append(value)
        elif kind.group.endswith("kubevirt.io") and _is_sized(kind.kind, subject.admission.data):
            self._machines.append((number, subject))

    def findings(self) -> Iterator[tuple[int, LocatedFinding]]:
        """The conflicts, and what preferences need."""
        if not self._known or not self._machines:
            return
        # Most inputs have nothing of this, and do not pay for the kinds that it needs.
        from paddock.kubevirt.kinds.inworld import sizing_findings  # noqa: PLC0415

        object_set = ObjectSet(self._known)
        for number, subject in self._machines:
            value: Any = subject.admission.value
            for found in sizing_findings(value, object_set, self._settings):
                place = place_of(subject.document, found)
                yield number, LocatedFinding(subject.document.source, place, subject.title, found)


def _is_sized(kind: str, data: Any) -> bool:
    for name in _MACHINES.get(kind, ("",)):
        data = data.get(name) if isinstance(data, dict) else None
    return isinstance(data, dict) and ("instancetype" in data or "preference" in data)
