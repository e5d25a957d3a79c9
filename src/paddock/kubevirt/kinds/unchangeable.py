"""Rules about changes that several kinds share: what was decided when an object was made stays."""

from collections.abc import Iterator
from typing import Any

from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Transition, transition


def differ(old: Object | None, new: Object | None) -> bool:
    """Return whether two values differ in meaning: 1Gi is 1024Mi, and a default may be spelled out."""
    if old is None or new is None:
        return old is not new
    return bool(residue(old, new) or residue(new, old))


def spec_is_immutable(id: str, message: str = "field is immutable") -> Transition:
    """The rule that the whole spec stays as it was created."""

    @transition(id, Cel("spec", "self == oldSelf", message))
    def spec_stays(old: Any, new: Any, settings: AdmissionSettings) -> Iterator[Finding]:
        """The spec cannot be changed after the object was created."""
        if differ(old.spec, new.spec):
            yield Finding(path=("spec",), message=f"Invalid value: {message}", rule=id)

    return spec_stays
