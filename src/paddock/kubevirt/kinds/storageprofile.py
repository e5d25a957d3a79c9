"""`cdi.kubevirt.io/v1beta1 StorageProfile`: what claims of a StorageClass look like (docs/spec/kubevirt.md 5.7)."""

from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import ACCESS_MODES, VOLUME_MODES
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.kind import AGE, Kind, Version

CLONE_STRATEGIES = ("copy", "snapshot", "csi-clone")
SOURCE_FORMATS = ("pvc", "snapshot")
CloneStrategy = Annotated[str | None, Field("How a claim is copied.", enum=CLONE_STRATEGIES)]
SourceFormat = Annotated[str | None, Field("How a DataImportCron keeps its imports.", enum=SOURCE_FORMATS)]


class ClaimPropertySet(Object):
    """One form a claim can have."""

    accessModes: Annotated[
        list[Annotated[str, Field(enum=ACCESS_MODES)]],
        Field("Access modes.", required=True, min_items=1, max_items=4, unique=True),
    ] = []
    volumeMode: Annotated[str, Field("Volume mode.", required=True, enum=VOLUME_MODES)] = ""


PropertySets = Annotated[list[ClaimPropertySet] | None, Field("The forms claims can have, the best first.", max_items=8)]


class StorageProfileSpec(Object):
    """The administrator's choices; they take precedence over the detected ones."""

    cloneStrategy: CloneStrategy = None
    claimPropertySets: PropertySets = None
    dataImportCronSourceFormat: SourceFormat = None
    snapshotClass: Annotated[str | None, Field("VolumeSnapshotClass to use.")] = None


class StorageProfileStatus(Object):
    """The settings in force."""

    storageClass: Annotated[str | None, Field("The StorageClass.")] = None
    provisioner: Annotated[str | None, Field("Who makes its volumes.")] = None
    cloneStrategy: CloneStrategy = None
    claimPropertySets: PropertySets = None
    dataImportCronSourceFormat: SourceFormat = None
    snapshotClass: Annotated[str | None, Field("VolumeSnapshotClass in use.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the profile.", keys=("type",))] = None


class StorageProfile(Resource):
    """The defaults that a StorageClass gives to claims that a DataVolume leaves open. Made by Paddock, one for each class."""

    spec: Annotated[StorageProfileSpec, Field("What an administrator decides.", required=True)] = StorageProfileSpec()
    status: Annotated[StorageProfileStatus | None, Field("What holds.")] = None


KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="StorageProfile",
        plural="storageprofiles",
        singular="storageprofile",
        namespaced=False,
        cls=StorageProfile,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE,),
    ),
)
