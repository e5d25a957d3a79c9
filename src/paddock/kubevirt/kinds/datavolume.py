"""The parts of a DataVolume: the claim, and the source of its content (docs/spec/kubevirt.md sections 5.1 and 5.3).

A machine embeds it in `dataVolumeTemplates`, a DataImportCron in its template, and a DataSource has the sources.
"""

from typing import Annotated

from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec, StorageClassName, StorageSpec
from paddock.kubernetes.schema.field import Empty, Field, Object

CONTENT_TYPES = ("kubevirt", "archive")
CDI_GROUP = "cdi.kubevirt.io"
_SECRET = Field("Secret with accessKeyId and secretKey.")
_CERTIFICATES = Field("ConfigMap with the certificate authorities to trust.")
NO_PODS = "transfers are not run in pods"


class NameReference(Object):
    """An object of the same namespace."""

    name: Annotated[str, Field("Name of the object.", required=True)] = ""


class CertificateReference(Object):
    """A Secret with one part of a client certificate."""

    secretRef: Annotated[NameReference | None, Field("The Secret.")] = None


class CertConfig(Object):
    """Certificates of an HTTPS server and of the client."""

    caBundle: Annotated[str | None, Field("Certificate authorities to trust: PEM, plain or in base64.")] = None
    secretRef: Annotated[NameReference | None, Field("Secret with certificate authorities to trust (ca.crt).")] = None
    cert: Annotated[CertificateReference | None, Field("Secret with the client's certificate (tls.crt).")] = None
    key: Annotated[CertificateReference | None, Field("Secret with the client's key (tls.key).")] = None


class HttpSource(Object):
    """An image behind a URL."""

    url: Annotated[str, Field("Address of the image, http or https.", required=True)] = ""
    secretRef: Annotated[str | None, Field("Secret with accessKeyId and secretKey for basic authentication.")] = None
    certConfigMap: Annotated[str | None, _CERTIFICATES] = None
    certConfig: Annotated[CertConfig | None, Field("Certificates of the server and of the client.")] = None
    extraHeaders: Annotated[list[str] | None, Field("Further headers, each a whole line.")] = None
    secretExtraHeaders: Annotated[list[str] | None, Field("Secrets with further headers.")] = None
    checksum: Annotated[
        str | None,
        Field(
            "Checksum of the download, such as sha256:...",
            pattern="^(md5:[0-9a-fA-F]{32}|sha1:[0-9a-fA-F]{40}|sha256:[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$",
            message="must be md5, sha1, sha256 or sha512, a colon and as many hexadecimal digits as that sum has",
        ),
    ] = None
    insecureSkipVerify: Annotated[bool | None, Field("Do not check the server's certificate.")] = None


class S3Source(Object):
    """An image in an S3 bucket."""

    url: Annotated[str, Field("Address of the image.", required=True)] = ""
    secretRef: Annotated[str | None, _SECRET] = None
    certConfigMap: Annotated[str | None, _CERTIFICATES] = None


class GcsSource(Object):
    """An image in Google Cloud Storage."""

    url: Annotated[str, Field("Address of the image, gs or https.", required=True)] = ""
    secretRef: Annotated[str | None, Field("Secret with the key of a service account.")] = None


class Platform(Object):
    """The variant of an image."""

    architecture: Annotated[str | None, Field("Architecture of the image.")] = None


class RegistrySource(Object):
    """An image in an OCI registry."""

    url: Annotated[str | None, Field("Address of the image, docker:// or oci-archive://.")] = None
    imageStream: Annotated[str | None, Field("Name of an image stream.")] = None
    pullMethod: Annotated[str | None, Field("Who pulls the image; default: pod.", enum=("pod", "node"))] = None
    secretRef: Annotated[str | None, _SECRET] = None
    certConfigMap: Annotated[str | None, _CERTIFICATES] = None
    platform: Annotated[Platform | None, Field("Which variant of the image is wanted.")] = None


class ImageioSource(Object):
    """A disk of oVirt."""

    url: Annotated[str, Field("Address of the engine.", required=True)] = ""
    diskId: Annotated[str, Field("Id of the disk.", required=True)] = ""
    secretRef: Annotated[str | None, _SECRET] = None
    certConfigMap: Annotated[str | None, _CERTIFICATES] = None
    insecureSkipVerify: Annotated[bool | None, Field("Do not check the server's certificate.")] = None


class VddkSource(Object):
    """A disk of VMware."""

    url: Annotated[str | None, Field("Address of the vCenter or host.")] = None
    uuid: Annotated[str | None, Field("UUID of the machine the disk belongs to.")] = None
    backingFile: Annotated[str | None, Field("Path of the disk.")] = None
    thumbprint: Annotated[str | None, Field("Thumbprint of the server's certificate.")] = None
    secretRef: Annotated[str | None, Field("Secret with user and password.")] = None
    certConfigMap: Annotated[str | None, _CERTIFICATES] = None
    initImageURL: Annotated[str | None, Field("Image with the VDDK library.")] = None
    extraArgs: Annotated[str | None, Field("ConfigMap with further arguments for the library.")] = None


class NamespacedReference(Object):
    """An object by namespace and name."""

    namespace: Annotated[str, Field("Namespace of the object.", required=True)] = ""
    name: Annotated[str, Field("Name of the object.", required=True)] = ""


class DataVolumeSource(Object):
    """The source of the content; exactly one member."""

    http: Annotated[HttpSource | None, Field("An image behind a URL.")] = None
    registry: Annotated[RegistrySource | None, Field("An image in an OCI registry.")] = None
    s3: Annotated[S3Source | None, Field("An image in an S3 bucket.")] = None
    gcs: Annotated[GcsSource | None, Field("An image in Google Cloud Storage.")] = None
    imageio: Annotated[ImageioSource | None, Field("A disk of oVirt.")] = None
    vddk: Annotated[VddkSource | None, Field("A disk of VMware.")] = None
    upload: Annotated[Empty | None, Field("A client uploads it.")] = None
    blank: Annotated[Empty | None, Field("An empty disk.")] = None
    pvc: Annotated[NamespacedReference | None, Field("A claim to copy.")] = None
    snapshot: Annotated[NamespacedReference | None, Field("A snapshot to copy.")] = None


DATA_SOURCES = DataVolumeSource.__struct_fields__


class SourceReference(Object):
    """A DataSource, which says where the content comes from."""

    kind: Annotated[str, Field("Kind of the object: DataSource.", required=True)] = ""
    name: Annotated[str, Field("Name of the object.", required=True, min_length=1, max_length=253)] = ""
    namespace: Annotated[str | None, Field("Namespace of the object; default: the DataVolume's.", format="dns1123-label")] = None
    apiGroup: Annotated[str | None, Field("Group of the object; cdi.kubevirt.io.")] = None


class Checkpoint(Object):
    """A stage of an import in several stages."""

    previous: Annotated[str, Field("Snapshot of the stage before.", required=True)] = ""
    current: Annotated[str, Field("Snapshot of this stage.", required=True)] = ""


class DataVolumeSpec(Object):
    """The claim and the content of a DataVolume."""

    source: Annotated[DataVolumeSource | None, Field("Where the content comes from.")] = None
    sourceRef: Annotated[SourceReference | None, Field("A DataSource that says where the content comes from.")] = None
    pvc: Annotated[PersistentVolumeClaimSpec | None, Field("The claim, taken literally.")] = None
    storage: Annotated[StorageSpec | None, Field("The claim, completed from the profile of the StorageClass.")] = None
    contentType: Annotated[str | None, Field("What the source holds; default: kubevirt, a disk.", enum=CONTENT_TYPES)] = None
    preallocation: Annotated[bool | None, Field("Allocate the whole disk at once.")] = None
    priorityClassName: Annotated[str | None, Field("PriorityClass of the import.", not_honoured=NO_PODS)] = None
    serviceAccountName: Annotated[str | None, Field("ServiceAccount of the import.", not_honoured=NO_PODS)] = None
    checkpoints: Annotated[list[Checkpoint] | None, Field("Stages of an import in several stages.")] = None
    finalCheckpoint: Annotated[bool | None, Field("Whether the last stage is the final one.")] = None
    storageClassName: StorageClassName = None
