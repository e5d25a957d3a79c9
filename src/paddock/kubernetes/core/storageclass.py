"""`storage.k8s.io/v1 StorageClass`."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from paddock.base import ownnames
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Freeform
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, transition

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
IS_DEFAULT_FOR_MACHINES = "storageclass.kubevirt.io/is-default-virt-class"
# Who makes volumes of directories on this host.
PROVISIONER = ownnames.DIRECTORY.name
# Somebody has to agree that nobody has the volume any more.
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


class StorageClass(Resource):
    """A kind of storage and who provides it."""

    provisioner: Annotated[str, Field("Who makes the volumes.", required=True, min_length=1)] = ""
    parameters: Annotated[dict[str, str] | None, Field("Settings for the provisioner.")] = None
    reclaimPolicy: Annotated[
        str | None,
        Field("What becomes of a volume whose claim is gone; default: Delete.", enum=("Delete", "Retain")),
    ] = None
    volumeBindingMode: Annotated[
        str | None,
        Field("When a volume is made; default: Immediate.", enum=("Immediate", "WaitForFirstConsumer")),
    ] = None
    allowVolumeExpansion: Annotated[bool | None, Field("Whether claims may grow.")] = None
    mountOptions: Annotated[list[str] | None, Field("Options of the mount.")] = None
    allowedTopologies: Annotated[list[Freeform] | None, Field("Where volumes may be made.")] = None


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class that a claim of a machine gets when it names none: the default for machines, else the default.

    Of several the newest counts, as in Kubernetes.
    """
    found = list(classes)
    for annotation in (IS_DEFAULT_FOR_MACHINES, IS_DEFAULT):
        marked = [each for each in found if (each.metadata.annotations or {}).get(annotation) == "true"]
        if marked:
            newest = max(each.metadata.creationTimestamp or "" for each in marked)
            same_age = (each for each in marked if (each.metadata.creationTimestamp or "") == newest)
            return min(same_age, key=lambda each: each.metadata.name)
    return None


@transition("core/storage-class-change")
def classes_stay(old: StorageClass, new: StorageClass, settings: AdmissionSettings) -> Iterator[Finding]:
    """Volumes were made by what the class says, so it does not change."""
    # What the server sets where nobody says anything is no change.
    for name, default in (("provisioner", None), ("parameters", None), ("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")):
        if (getattr(old, name) or default) != (getattr(new, name) or default):
            yield finding.forbidden((name,), "updates to this field are forbidden", "core/storage-class-change")


KINDS = (
    Kind(
        group="storage.k8s.io",
        kind="StorageClass",
        plural="storageclasses",
        singular="storageclass",
        short_names=("sc",),
        namespaced=False,
        cls=StorageClass,
        dialect="core",
        columns=(
            Column("Provisioner", ".provisioner"),
            Column("ReclaimPolicy", ".reclaimPolicy"),
            Column("VolumeBindingMode", ".volumeBindingMode"),
            Column("AllowVolumeExpansion", ".allowVolumeExpansion", "boolean"),
            AGE,
        ),
        status=False,
        builtin=True,
        transitions=(classes_stay,),
    ),
)
