"""Claims on storage, as PersistentVolumeClaim, DataVolume and the volumes of a machine embed them."""

from typing import Annotated

from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema.field import Field, Object, Quantity

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany", "ReadWriteOncePod")
VOLUME_MODES = ("Filesystem", "Block")

AccessModes = Annotated[
    list[Annotated[str, Field(enum=ACCESS_MODES)]] | None,
    Field("Who may mount the volume, and how.", max_items=4),
]
StorageClassName = Annotated[
    str | None,
    Field(
        "StorageClass; absent means the default class, the empty text means none.",
        max_length=253,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
        message="must be a DNS-1123 subdomain",
    ),
]
VolumeMode = Annotated[str | None, Field("Whether the volume has a filesystem; default: Filesystem.", enum=VOLUME_MODES)]
Quantities = dict[str, Annotated[Quantity, Field("An amount.")]]


class ResourceRequirements(Object):
    """The requested and the largest amounts."""

    requests: Annotated[Quantities | None, Field("The least amount of each resource.")] = None
    limits: Annotated[Quantities | None, Field("The most of each resource.")] = None


class TypedLocalReference(Object):
    """An object of any kind in the same namespace."""

    apiGroup: Annotated[str | None, Field("Group of the object; absent for the core group.")] = None
    kind: Annotated[str, Field("Kind of the object.", required=True, min_length=1)] = ""
    name: Annotated[str, Field("Name of the object.", required=True, min_length=1)] = ""


class TypedReference(Object):
    """An object of any kind."""

    apiGroup: Annotated[str | None, Field("Group of the object; absent for the core group.")] = None
    kind: Annotated[str, Field("Kind of the object.", required=True, min_length=1)] = ""
    name: Annotated[str, Field("Name of the object.", required=True, min_length=1)] = ""
    namespace: Annotated[str | None, Field("Namespace of the object; default: the same.", format="dns1123-label")] = None


class StorageSpec(Object):
    """The properties of a claim; every member may be left to the profile of the StorageClass."""

    accessModes: AccessModes = None
    resources: Annotated[ResourceRequirements | None, Field("Size of the volume, as requests.storage.")] = None
    storageClassName: StorageClassName = None
    volumeMode: VolumeMode = None
    volumeName: Annotated[str | None, Field("The volume to bind to.")] = None
    selector: Annotated[LabelSelector | None, Field("Labels of the volumes that may be bound.")] = None
    dataSource: Annotated[TypedLocalReference | None, Field("What the volume is filled from.")] = None
    dataSourceRef: Annotated[TypedReference | None, Field("What the volume is filled from.")] = None


class PersistentVolumeClaimSpec(StorageSpec):
    """The properties of a PersistentVolumeClaim."""

    volumeAttributesClassName: Annotated[str | None, Field("Class of attributes that can be changed later.")] = None
