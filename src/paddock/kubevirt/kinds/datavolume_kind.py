"""`cdi.kubevirt.io/v1beta1 DataVolume`: a claim and where its content comes from (docs/spec/kubevirt.md 5.1 and 5.2)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import AGE, Cel, Column, Kind, Version
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable
from paddock.kubevirt.rules.datavolume import CLAIM, SOURCE, data_volume_rules


class DataCondition(Condition):
    """One observed aspect of data and where it comes from."""

    lastHeartbeatTime: Annotated[Time | None, Field("When it was last looked at.", nullable=True)] = None


class DataVolumeStatus(Object):
    """The progress of the content."""

    claimName: Annotated[str | None, Field("Name of the claim.")] = None
    phase: Annotated[str | None, Field("Pending, ImportInProgress, Succeeded, Failed and the steps between.")] = None
    progress: Annotated[str | None, Field("Percentage such as 45.34%, or N/A.")] = None
    restartCount: Annotated[int | None, Field("How often the transfer was started again.")] = None
    conditions: Annotated[list[DataCondition] | None, Field("Bound, Running, Ready.", keys=("type",))] = None


class DataVolume(Resource):
    """A disk for a machine: a claim, and the image or copy it is filled with."""

    spec: Annotated[DataVolumeSpec, Field("The claim and its source.", required=True)] = DataVolumeSpec()
    status: Annotated[DataVolumeStatus | None, Field("How far the content has come.")] = None


_CEL = {
    CLAIM: (
        Cel("spec", "has(self.pvc) || has(self.storage)", "give pvc or storage", ".pvc", "FieldValueRequired"),
        Cel("spec", "!has(self.pvc) || !has(self.storage)", "pvc is set too", ".storage", "FieldValueForbidden"),
    ),
    SOURCE: (Cel("spec", "!has(self.source) || !has(self.sourceRef)", "give exactly one of source and sourceRef", ".source"),),
}


def _spec(volume: DataVolume) -> Iterator[tuple[Path, DataVolumeSpec]]:
    yield ("spec",), volume.spec


KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="DataVolume",
        plural="datavolumes",
        singular="datavolume",
        short_names=("dv", "dvs"),
        categories=("all",),
        cls=DataVolume,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(
            Column("Phase", ".status.phase", text="The phase the content is in."),
            Column("Progress", ".status.progress", text="Percentage of the transfer, when it is known."),
            Column("Restarts", ".status.restartCount", "integer", text="How often the transfer was started again."),
            AGE,
        ),
        rules=data_volume_rules(_spec, _CEL),
        transitions=(spec_is_immutable("kubevirt/data-volume-change", "Cannot update DataVolume Spec"),),
    ),
)
