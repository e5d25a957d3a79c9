"""Machines of an input whose network cards have one address on one network. Only their cards are kept."""

from collections.abc import Iterator

from paddock.fleet.documents.objects import InputObject, LocatedFinding
from paddock.kubernetes.meta.manifests.document import Position
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE
from paddock.kubernetes.schema import finding
from paddock.kubevirt.kinds import macs

_GROUP, _KIND = "kubevirt.io", "VirtualMachine"


class Macs:
    """The addresses of an input."""

    def __init__(self) -> None:
        # namespace, network, address -> the machine that had it first
        self._first: dict[tuple[str, str, str], str] = {}
        self._found: list[tuple[int, LocatedFinding]] = []

    def add(self, number: int, subject: InputObject) -> None:
        kind = subject.admission.kind
        if kind is None or (kind.group, kind.kind) != (_GROUP, _KIND):
            return
        metadata = subject.admission.data.get("metadata") or {}
        namespace, name = metadata.get("namespace") or DEFAULT_NAMESPACE, metadata.get("name") or ""
        for interface in macs.cards(subject.admission.data):
            first = self._first.setdefault((namespace, interface.network, interface.address), name)
            if first != name:
                position: Position = subject.document.position(interface.path)
                warning = finding.warning(interface.path, macs.message(first), macs.RULE)
                self._found.append((number, LocatedFinding(subject.document.source, position, subject.title, warning)))

    def findings(self) -> Iterator[tuple[int, LocatedFinding]]:
        """Every second machine with an address."""
        yield from self._found
