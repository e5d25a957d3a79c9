"""The volumes of a machine: where the content of its disks comes from."""

from typing import Annotated

from paddock.kubernetes.meta.pods import DownwardAPIFile
from paddock.kubernetes.schema.field import Empty, Field, Object, Quantity
from paddock.kubevirt.kinds.firmware import PULL_POLICIES

_LABEL = Field("Label of the disk the guest sees; default: cfgdata.")
_OPTIONAL = Field("Whether the object may be missing.")
_HOTPLUGGABLE = Field("Whether the volume was plugged into a running machine and can be unplugged.")


class VolumeNameReference(Object):
    """An object of the same namespace."""

    name: Annotated[str, Field("Name of the object.", zero=True)] = ""


class HostDisk(Object):
    """An image file of the host."""

    path: Annotated[str, Field("Path of the file.", zero=True)] = ""
    type: Annotated[str, Field("Whether the file is there or may be created.", required=True, enum=("Disk", "DiskOrCreate"))] = ""
    capacity: Annotated[Quantity | None, Field("Size of a file that is created.")] = None
    shared: Annotated[bool | None, Field("Whether all nodes see the same file.")] = None


class ClaimVolume(Object):
    """A claim of the same namespace."""

    claimName: Annotated[str, Field("Name of the claim.", required=True)] = ""
    readOnly: Annotated[bool | None, Field("The guest cannot write.")] = None
    hotpluggable: Annotated[bool | None, _HOTPLUGGABLE] = None


class EphemeralClaim(Object):
    """A claim of the same namespace that is only read."""

    claimName: Annotated[str, Field("Name of the claim.", required=True)] = ""
    readOnly: Annotated[bool | None, Field("Has no meaning here: the claim is never written.")] = None


class EphemeralVolume(Object):
    """A layer over a claim; what the guest writes is gone when it stops."""

    persistentVolumeClaim: Annotated[EphemeralClaim | None, Field("The claim beneath.")] = None


class CloudInitSource(Object):
    """A disk for cloud-init."""

    userData: Annotated[str | None, Field("User data, at most 2048 bytes.", secret=True)] = None
    userDataBase64: Annotated[str | None, Field("User data in base64.", secret=True)] = None
    secretRef: Annotated[VolumeNameReference | None, Field("Secret with the user data (key userdata).", aliases=("userDataSecretRef",))] = (
        None
    )
    networkData: Annotated[str | None, Field("Network configuration, at most 2048 bytes.", secret=True)] = None
    networkDataBase64: Annotated[str | None, Field("Network configuration in base64.", secret=True)] = None
    networkDataSecretRef: Annotated[VolumeNameReference | None, Field("Secret with the network configuration (key networkdata).")] = None


class Sysprep(Object):
    """A disk with the answer file of Windows (autounattend.xml)."""

    configMap: Annotated[VolumeNameReference | None, Field("ConfigMap with the file.")] = None
    secret: Annotated[VolumeNameReference | None, Field("Secret with the file.")] = None


class ContainerDisk(Object):
    """A disk in a container image; what the guest writes is gone when it stops."""

    image: Annotated[str, Field("The image.", required=True, format="image")] = ""
    imagePullSecret: Annotated[str | None, Field("Secret with the credentials of the registry.")] = None
    imagePullPolicy: Annotated[str | None, Field("When the image is pulled.", enum=PULL_POLICIES, empty_is_unset=True)] = None
    path: Annotated[str | None, Field("Path of the disk in the image; default: the only file under /disk.")] = None


class EmptyDisk(Object):
    """An empty disk that is gone when the machine stops."""

    capacity: Annotated[Quantity, Field("Its size.", required=True)] = "0"


class DataVolumeVolume(Object):
    """The claim that a DataVolume fills."""

    name: Annotated[str, Field("Name of the DataVolume and of its claim.", required=True)] = ""
    hotpluggable: Annotated[bool | None, _HOTPLUGGABLE] = None


class ConfigMapVolume(Object):
    """A disk with the files of a ConfigMap."""

    name: Annotated[str, Field("Name of the ConfigMap.", zero=True)] = ""
    optional: Annotated[bool | None, _OPTIONAL] = None
    volumeLabel: Annotated[str | None, _LABEL] = None


class SecretVolume(Object):
    """A disk with the files of a Secret."""

    secretName: Annotated[str, Field("Name of the Secret.", zero=True)] = ""
    optional: Annotated[bool | None, _OPTIONAL] = None
    volumeLabel: Annotated[str | None, _LABEL] = None


class DownwardAPIVolume(Object):
    """A disk with facts about the machine."""

    fields: Annotated[list[DownwardAPIFile] | None, Field("The files.")] = None
    volumeLabel: Annotated[str | None, _LABEL] = None


class ServiceAccountVolume(Object):
    """A disk with the token of a service account."""

    serviceAccountName: Annotated[str, Field("Name of the service account.", zero=True)] = ""


class ContainerPathVolume(Object):
    """A directory of the launcher's container, which an engine without containers does not have."""

    path: Annotated[str, Field("The path.", required=True)] = ""
    readOnly: Annotated[bool, Field("Whether it is only read.")] = True


class Volume(Object):
    """A volume; exactly one source."""

    name: Annotated[str, Field("Name of the volume and of its disk.", required=True)] = ""
    dataVolume: Annotated[DataVolumeVolume | None, Field("The claim that a DataVolume fills.")] = None
    persistentVolumeClaim: Annotated[ClaimVolume | None, Field("A claim.")] = None
    containerDisk: Annotated[ContainerDisk | None, Field("A disk in a container image.")] = None
    cloudInitNoCloud: Annotated[CloudInitSource | None, Field("A disk for cloud-init's NoCloud.")] = None
    cloudInitConfigDrive: Annotated[CloudInitSource | None, Field("A disk for cloud-init's ConfigDrive.")] = None
    emptyDisk: Annotated[EmptyDisk | None, Field("An empty disk.")] = None
    ephemeral: Annotated[EphemeralVolume | None, Field("A throw-away layer over a claim.")] = None
    hostDisk: Annotated[HostDisk | None, Field("An image file of the host.")] = None
    sysprep: Annotated[Sysprep | None, Field("A disk with the answer file of Windows.")] = None
    configMap: Annotated[ConfigMapVolume | None, Field("A disk with the files of a ConfigMap.")] = None
    secret: Annotated[SecretVolume | None, Field("A disk with the files of a Secret.")] = None
    serviceAccount: Annotated[ServiceAccountVolume | None, Field("A disk with the token of a service account.")] = None
    downwardAPI: Annotated[DownwardAPIVolume | None, Field("A disk with facts about the machine.")] = None
    downwardMetrics: Annotated[Empty | None, Field("A disk with metrics of the host.")] = None
    memoryDump: Annotated[ClaimVolume | None, Field("A claim that a memory dump is written to.")] = None
    containerPath: Annotated[
        ContainerPathVolume | None,
        Field("A directory of the launcher's container.", not_honoured="there is no launcher container here"),
    ] = None


SOURCES = tuple(name for name in Volume.__struct_fields__ if name != "name")


class UtilityVolume(Object):
    """A claim that is mounted beside the machine without being one of its disks."""

    name: Annotated[str, Field("Name of the volume.", required=True)] = ""
    type: Annotated[str | None, Field("What the volume is for.")] = None
    claimName: Annotated[str, Field("Name of the claim.", required=True)] = ""
    readOnly: Annotated[bool | None, Field("The claim is only read.")] = None
