"""Two sets of manifests side by side: which object is which, and where they differ in meaning.

Objects are the same when group, kind, namespace and name are. A machine that is of one kind on one side and of another on the
other is compared as the KubeVirt objects that both become.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from paddock.fleet.documents.inputobjects import InputObjects
from paddock.fleet.documents.objects import LocatedFinding
from paddock.fleet.documents.rendering import RenderedObject, RenderSummary, render
from paddock.kubernetes import admission
from paddock.kubernetes.admission import AdmissionResult
from paddock.kubernetes.meta.manifests.document import Document
from paddock.kubernetes.meta.redaction import HIDDEN
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE
from paddock.kubernetes.schema import finding, shape
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind
from paddock.kubevirt.plan.changes.differences import ABSENT, FieldDifference, ValueChange, differences, format_named

Key = tuple[str, str, str, str]


class ComparedObject(msgspec.Struct, frozen=True):
    """An object of one side: its place and its form with the defaults in it."""

    document: Document
    title: str
    admission: AdmissionResult
    rendered: bool = False


class ObjectPair(msgspec.Struct, frozen=True):
    """An object on both sides, or on one."""

    old: ComparedObject | None
    new: ComparedObject | None

    @property
    def kind(self) -> Kind | None:
        return self.side.admission.kind

    @property
    def side(self) -> ComparedObject:
        """The newest form that there is of it."""
        side = self.new or self.old
        if side is None:
            raise ValueError("a pair of no objects")
        return side

    def differences(self) -> Iterator[FieldDifference]:
        """Yield the differences of the two forms."""
        if self.old is None or self.new is None:
            return
        before, after = self.old.admission.data, self.new.admission.data
        if self.kind is None:
            if before != after:
                yield FieldDifference(ValueChange.CHANGED, (), (), ABSENT, ABSENT)
            return
        yield from differences(shape.shape_of(self.kind.cls), before, after)


def pair(old: InputObjects, new: InputObjects, outcome: RenderSummary, *, crossing: bool = True) -> list[ObjectPair]:
    """The objects of both sides, those of the new side first and in its order.

    `crossing`: whether a machine may be compared with one of another kind.
    """
    before, after = _by_key(old), _by_key(new)
    left = {key: side for key, side in before.items() if key not in after}
    right = {key: side for key, side in after.items() if key not in before}
    over = _crossing(left, right) if crossing else set()
    if not over:
        return _pairs(before, after)
    started = {key: side for key, side in before.items() if key not in over}
    ended = {key: side for key, side in after.items() if key not in over}
    return _pairs({**started, **_rendered(old, over, outcome)}, {**ended, **_rendered(new, over, outcome)})


def _pairs(before: dict[Key, ComparedObject], after: dict[Key, ComparedObject]) -> list[ObjectPair]:
    found = [ObjectPair(before.get(key), side) for key, side in after.items()]
    return [*found, *(ObjectPair(side, None) for key, side in before.items() if key not in after)]


def _by_key(gathered: InputObjects) -> dict[Key, ComparedObject]:
    return {
        key_of(subject.document.data): ComparedObject(subject.document, subject.title, subject.admission) for subject in gathered.subjects
    }


def key_of(data: dict[str, Any]) -> Key:
    """Return the identity of an object, without its version."""
    group, _ = admission.split_api_version(data.get("apiVersion"))
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return group, str(data.get("kind")), str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name"))


def _crossing(left: dict[Key, ComparedObject], right: dict[Key, ComparedObject]) -> set[Key]:
    """The machines that are of another kind on the other side: of the same name, or the only ones."""
    machines = [{key: side for key, side in each.items() if _is_machine(side)} for each in (left, right)]
    if len(machines[0]) == len(machines[1]) == 1:
        return {*machines[0], *machines[1]}
    found = set()
    for key in machines[0]:
        for other in machines[1]:
            if key[2:] == other[2:]:
                found |= {key, other}
    return found


def _is_machine(side: ComparedObject) -> bool:
    kind = side.admission.kind
    return kind is not None and kind.kind in ("VirtualMachine", "Machine")


def _rendered(gathered: InputObjects, crossing: set[Key], outcome: RenderSummary) -> dict[Key, ComparedObject]:
    """The KubeVirt objects of the machines that cross over."""
    subjects = [subject for subject in gathered.subjects if key_of(subject.document.data) in crossing]
    made = render(gathered.narrowed(subjects), Rendering(), outcome)
    return {key_of(each.data): _side(each) for each in made}


def _side(each: RenderedObject) -> ComparedObject:
    admitted = admission.admit(each.data, AdmissionSettings())
    name = f"{each.data.get('kind')}/{(each.data.get('metadata') or {}).get('name')}"
    return ComparedObject(each.origin.document, name, admitted, rendered=each.generated)


def place(pair: ObjectPair, difference: FieldDifference) -> LocatedFinding:
    """Return the position of a difference: in the new manifest, or in the old one if it is gone."""
    gone = difference.how is ValueChange.REMOVED
    side = (pair.old if gone else pair.new) or pair.side
    position = side.document.start if side.rendered else side.document.position(difference.path)
    return LocatedFinding(side.document.source, position, side.title, finding.note(difference.path, text(difference), ""))


def text(difference: FieldDifference) -> str:
    """`field: before -> after`, or what was added or removed."""
    field = format_named(difference.named)
    before, after = _show(difference.before), _show(difference.after)
    if not field:
        return "differs"
    if difference.how is ValueChange.ADDED:
        return f"{field}: added {after}"
    if difference.how is ValueChange.REMOVED:
        return f"{field}: removed {before}"
    return f"{field}: {before} -> {after}" if before != after else f"{field}: {before}"


def _show(value: Any) -> str:
    return HIDDEN if value == HIDDEN else finding.show(value)
