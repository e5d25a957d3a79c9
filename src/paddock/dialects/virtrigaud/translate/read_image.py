"""The root disk of a KubeVirt machine as a VMImage, or as a disk that is there already."""

import dataclasses
from typing import Any, TypeVar

import msgspec

from paddock.contract.specs import (
    REFERENCE_PATTERN,
    BasicAuth,
    BearerToken,
    ClientCert,
    DataVolumeImageSource,
    DistributionInfo,
    HTTPAuthentication,
    HTTPImageSource,
    ImageMetadata,
    ImageSource,
    LibvirtImageSource,
    LocalObjectReference,
    RegistryImageSource,
    VMImageSpec,
)
from paddock.dialects.virtrigaud.kinds.machine import ImportedDiskRef
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION, ObjectRef
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.fetching import CERTIFICATE, KEY, PASSWORD, USER
from paddock.dialects.virtrigaud.translate.hardware import ARCHITECTURES
from paddock.dialects.virtrigaud.translate.reading import MachineReader, claim_of, from_json, is_name, plain
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.formats import compiled
from paddock.kubevirt.kinds.datavolume import HttpSource, RegistrySource
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate

T = TypeVar("T", bound=Object)
_DOCKER = "docker://"


@dataclasses.dataclass(frozen=True)
class BootSource:
    """The boot source of the machine: an image, or a disk; neither when it is unknown."""

    image: VMImage | None = None
    ref: ObjectRef | None = None
    imported: ImportedDiskRef | None = None


def read(reading: MachineReader, root: Disk | None) -> BootSource:
    """The image of the root disk, if one can say what fills it."""
    if root is None:
        return BootSource()
    volume = reading.volumes[root.name]
    template = reading.template_of(volume)
    if volume.containerDisk is not None:
        image = volume.containerDisk.image
        image = image if compiled(REFERENCE_PATTERN).search(image) else f"{image}:latest"
        if compiled(REFERENCE_PATTERN).search(image):
            pull = volume.containerDisk.imagePullSecret
            source = RegistryImageSource(image=image, pullSecretRef=LocalObjectReference(name=pull) if pull and is_name(pull) else None)
            return _image(reading, ImageSource(registry=source), None)
        return BootSource()
    reference = template.spec.sourceRef if template is not None else None
    if template is not None and reference is not None and reference.kind == "DataSource" and is_name(reference.name):
        return _from_data_source(reading, template, ObjectRef(name=reference.name, namespace=reference.namespace))
    source_of_image = _source(reading, template) if template is not None else None
    if source_of_image is not None:
        return _image(reading, source_of_image, template)
    claim = claim_of(volume)
    return BootSource(imported=ImportedDiskRef(diskID=claim)) if claim and len(claim) <= 253 else BootSource()


def _image(reading: MachineReader, source: ImageSource, template: DataVolumeTemplate | None) -> BootSource:
    ref = reading.reference(marks.IMAGE, reading.name)
    return _made(reading, ref, source, template)


def _from_data_source(reading: MachineReader, template: DataVolumeTemplate, ref: ObjectRef) -> BootSource:
    """A DataSource has no counterpart; an image without a source of its own stands for the DataSource of its name."""
    remembered = reading.reference(marks.IMAGE, "") if marks.IMAGE in reading.annotations else None
    if remembered is None:
        reading.lose(
            ("spec", "dataVolumeTemplates", list(reading.templates.values()).index(template), "spec", "sourceRef", "kind"),
            "DataSource",
            "VirtRigaud has no DataSources",
            f"VMImage {ref.name} has no source; give it one before a provider other than KubeVirt needs it",
        )
    return _made(reading, remembered if remembered is not None and remembered.name == ref.name else ref, ImageSource(), template)


def _made(reading: MachineReader, ref: ObjectRef, source: ImageSource, template: DataVolumeTemplate | None) -> BootSource:
    metadata, distribution = _about(reading, template)
    spec = VMImageSpec(source=source, metadata=metadata, distribution=distribution)
    image = VMImage(apiVersion=API_VERSION, kind="VMImage", metadata=reading.metadata_of(ref), spec=spec)
    return BootSource(image, ref)


def _about(reading: MachineReader, template: DataVolumeTemplate | None) -> tuple[ImageMetadata | None, DistributionInfo | None]:
    annotations = (template.metadata.annotations if template is not None and template.metadata is not None else None) or {}
    about = from_json(annotations.get(marks.ABOUT))
    about = about if isinstance(about, dict) else {}
    metadata, distribution = typed(ImageMetadata, about.get("metadata")), typed(DistributionInfo, about.get("distribution"))
    kind = reading.instance.architecture
    if kind in ARCHITECTURES and (metadata is None or ARCHITECTURES.get(metadata.architecture) != kind):
        metadata = msgspec.structs.replace(metadata or ImageMetadata(), architecture=kind)
    return metadata, distribution


def typed(cls: type[T], data: Any) -> T | None:
    """Return an annotation's value as an object, when it is a valid one."""
    if not isinstance(data, dict):
        return None
    checked = check(cls, data)
    return None if checked.findings else from_data(checked.value, cls)


def _source(reading: MachineReader, template: DataVolumeTemplate) -> ImageSource | None:
    source = template.spec.source
    if source is None:
        return None
    if source.http is not None:
        return _http(reading, source.http)
    if source.registry is not None:
        return _registry(reading, source.registry)
    if source.pvc is not None and is_name(source.pvc.name) and is_name(source.pvc.namespace):
        return ImageSource(dataVolume=DataVolumeImageSource(name=source.pvc.name, namespace=source.pvc.namespace))
    return None


def _http(reading: MachineReader, http_source: HttpSource) -> ImageSource | None:
    if not http_source.url.startswith(("http://", "https://")):
        return None
    kind, _, digits = (http_source.checksum or "").partition(":")
    sums: dict[str, Any] = {"checksum": digits, "checksumType": kind} if digits else {}
    authentication = _authentication(reading, http_source)
    headers = _headers(http_source)
    if reading.annotations.get(marks.SOURCE) == "libvirt" and authentication is None and not headers:
        return ImageSource(libvirt=LibvirtImageSource(url=http_source.url, **sums))
    return ImageSource(http=HTTPImageSource(url=http_source.url, headers=headers, authentication=authentication, **sums))


def _headers(http_source: HttpSource) -> dict[str, str] | None:
    pairs = [header.partition(": ") for header in http_source.extraHeaders or ()]
    return {name: value for name, colon, value in pairs[:20] if colon and name} or None


def _authentication(reading: MachineReader, http_source: HttpSource) -> HTTPAuthentication | None:
    """Return the authentication by the user's Secret: a copy names its original."""
    if http_source.secretRef and is_name(http_source.secretRef):
        name, keys = _original(reading, http_source.secretRef, "basicAuth")
        keys = keys or {"usernameKey": USER, "passwordKey": PASSWORD}
        return HTTPAuthentication(basicAuth=BasicAuth(secretRef=LocalObjectReference(name=name), **keys))
    if http_source.secretExtraHeaders:
        name, keys = _original(reading, http_source.secretExtraHeaders[0], "bearer")
        if keys is not None:
            return HTTPAuthentication(bearer=BearerToken(secretRef=LocalObjectReference(name=name), **keys))
    part = http_source.certConfig.cert if http_source.certConfig is not None else None
    if part is not None and part.secretRef is not None and is_name(part.secretRef.name):
        name, keys = _original(reading, part.secretRef.name, "clientCert")
        keys = keys or {"certKey": CERTIFICATE, "keyKey": KEY}
        return HTTPAuthentication(clientCert=ClientCert(secretRef=LocalObjectReference(name=name), **keys))
    return None


def _registry(reading: MachineReader, registry_source: RegistrySource) -> ImageSource | None:
    image = (registry_source.url or "").removeprefix(_DOCKER)
    if not (registry_source.url or "").startswith(_DOCKER):
        return None
    image = image if compiled(REFERENCE_PATTERN).search(image) else f"{image}:latest"
    if not compiled(REFERENCE_PATTERN).search(image):
        return None
    pull = None
    if registry_source.secretRef and is_name(registry_source.secretRef):
        pull = LocalObjectReference(name=_original(reading, registry_source.secretRef, "pullSecretRef")[0])
    return ImageSource(registry=RegistryImageSource(image=image, pullSecretRef=pull))


def _original(reading: MachineReader, name: str, what: str) -> tuple[str, dict[str, str] | None]:
    """The Secret that a Secret was copied from, and the keys in it; the Secret itself when it is no copy."""
    secret = reading.object_set.get(Secret, reading.namespace, name)
    about = from_json((secret.metadata.annotations or {}).get(marks.SECRET)) if secret is not None else None
    if not isinstance(about, dict) or not isinstance(about.get("name"), str) or not isinstance(about.get(what), dict):
        return name, None
    keys = {key: value for key, value in about[what].items() if isinstance(value, str)}
    return (about["name"], keys) if is_name(about["name"]) else (plain(name), None)
