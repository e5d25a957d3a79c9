"""`apps/v1 ControllerRevision`."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Freeform
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, transition


class ControllerRevision(Resource):
    """A former state of an object: the template of a pool, the instancetype of a machine."""

    data: Annotated[Freeform | None, Field("The object or the part of it that is kept.")] = None
    revision: Annotated[int, Field("Number of the revision.", required=True, ge=0)] = 0


@transition("core/revision-change")
def data_stays(old: ControllerRevision, new: ControllerRevision, settings: AdmissionSettings) -> Iterator[Finding]:
    """The stored state is immutable."""
    if old.data != new.data:
        yield finding.secret_invalid(("data",), "field is immutable", "core/revision-change")


KINDS = (
    Kind(
        group="apps",
        kind="ControllerRevision",
        plural="controllerrevisions",
        singular="controllerrevision",
        cls=ControllerRevision,
        dialect="core",
        columns=(
            Column("Controller", ".metadata.ownerReferences[0].name"),
            Column("Revision", ".revision", "integer"),
            AGE,
        ),
        status=False,
        builtin=True,
        transitions=(data_stays,),
    ),
)
