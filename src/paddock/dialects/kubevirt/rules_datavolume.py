"""The rules of what a DataVolume asks for, wherever it stands (docs/spec/kubevirt.md 5.1, docs/spec/kubermatic.md 1.2 and 1.3).

Every function takes the place of what it looks at, because a DataVolume, a machine's template of one, a DataImportCron and a
DataSource share these rules. All are pure and tolerate objects with other errors.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from paddock.base import quantity
from paddock.dialects.kubevirt import pem
from paddock.dialects.kubevirt.datavolume import (
    CDI_GROUP,
    DATA_SOURCES,
    CertConfig,
    DataVolumeSource,
    DataVolumeSpec,
    HttpSource,
    RegistrySource,
    SourceReference,
)
from paddock.meta.selectors import selector_findings
from paddock.meta.storage import PersistentVolumeClaimSpec, StorageSpec
from paddock.schema import finding
from paddock.schema.finding import Cause, Finding, Path
from paddock.schema.kind import Settings

SOURCE = "kubevirt/data-volume-source"
CLAIM = "kubevirt/data-volume-claim"
CLASS = "kubevirt/storage-class-place"
CONTENT = "kubevirt/archive"
URL = "kubevirt/source-url"
CERTIFICATES = "kubevirt/certificates"
IMAGE_GROUP = "virtualization.k8c.io"
_EXACTLY_ONE = "give exactly one of source and sourceRef"
# Which sources take their size from what they copy.
COPIES = ("pvc", "snapshot")
_SCHEMES = {
    "http": ("http", "https"),
    "s3": ("http", "https", "s3"),
    "gcs": ("gs", "http", "https"),
    "imageio": ("http", "https"),
    "registry": ("docker", "oci-archive"),
}


def data_volume_findings(spec: DataVolumeSpec, path: Path, settings: Settings) -> Iterator[Finding]:
    """Everything that is wrong across the fields of a DataVolume's spec."""
    yield from _source(spec, path, settings)
    yield from _claim(spec, path)
    yield from _content(spec, path)
    yield from _class(spec, path)


def is_populated_from_outside(spec: DataVolumeSpec) -> bool:
    """Whether something else than CDI fills the claim."""
    claim = spec.pvc or spec.storage
    return claim is not None and (claim.dataSource is not None or claim.dataSourceRef is not None)


def given_sources(source: DataVolumeSource) -> list[str]:
    """The members of a source that are set."""
    return [name for name in DATA_SOURCES if getattr(source, name) is not None]


def _source(spec: DataVolumeSpec, path: Path, settings: Settings) -> Iterator[Finding]:
    place = (*path, "source")
    outside = is_populated_from_outside(spec)
    if spec.source is not None and spec.sourceRef is not None:
        yield Finding(path=place, message=f"Invalid value: {_EXACTLY_ONE}; both are set", rule=SOURCE)
    elif outside and (spec.source is not None or spec.sourceRef is not None):
        why = "the claim names a dataSource or dataSourceRef that fills it; leave source and sourceRef out"
        yield finding.forbidden(place if spec.source is not None else (*path, "sourceRef"), why, SOURCE)
    elif spec.source is None and spec.sourceRef is None and not outside:
        yield Finding(path=place, message=f"Invalid value: {_EXACTLY_ONE}; neither is set", rule=SOURCE)
    if spec.source is not None:
        yield from source_findings(spec.source, place)
    if spec.sourceRef is not None:
        yield from _source_ref(spec.sourceRef, (*path, "sourceRef"), settings)


def source_findings(source: DataVolumeSource, path: Path) -> Iterator[Finding]:
    """A source has exactly one member, and that is usable."""
    given = given_sources(source)
    if not given:
        yield Finding(path=path, message="Invalid value: Missing dataVolume valid source", rule=SOURCE)
    elif len(given) > 1:
        yield Finding(path=path, message=f"Invalid value: Multiple dataVolume sources: {', '.join(given)}", rule=SOURCE)
    for name in given:
        yield from member_findings(name, getattr(source, name), (*path, name))


def member_findings(name: str, member: object, path: Path) -> Iterator[Finding]:
    """What is wrong with one kind of source."""
    if isinstance(member, RegistrySource):
        yield from _registry(member, path)
    elif name in _SCHEMES:
        yield from url_findings(getattr(member, "url", ""), (*path, "url"), _SCHEMES[name])
    if isinstance(member, HttpSource):
        yield from _certificates(member, path)


def url_findings(url: str, path: Path, schemes: tuple[str, ...]) -> Iterator[Finding]:
    """An address has a scheme that fits, a host, and no user or password."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        host, user = parts.hostname, parts.username
    except ValueError as error:
        yield finding.secret_invalid(path, f"not a URL: {error}", URL)
        return
    if user is not None:
        yield finding.secret_invalid(path, "credentials belong in a Secret", URL)
    elif parts.scheme not in schemes:
        yield finding.invalid(path, url, f"the scheme must be {' or '.join(schemes)}", URL)
    elif not host and not (parts.scheme == "oci-archive" and parts.path):
        yield finding.invalid(path, url, "must name a host", URL)


def _registry(source: RegistrySource, path: Path) -> Iterator[Finding]:
    if source.url and source.imageStream:
        yield finding.forbidden((*path, "imageStream"), "url is set too", SOURCE)
    elif not source.url and not source.imageStream:
        yield finding.required((*path, "url"), SOURCE, "give url or imageStream")
    if source.imageStream and source.pullMethod != "node":
        yield finding.invalid((*path, "pullMethod"), source.pullMethod or "pod", "an imageStream needs the pullMethod node", SOURCE)
    yield from url_findings(source.url or "", (*path, "url"), _SCHEMES["registry"])


def _certificates(source: HttpSource, path: Path) -> Iterator[Finding]:
    config = source.certConfig
    if config is not None:
        yield from _cert_config(config, source.url, (*path, "certConfig"))
    trusted = source.certConfigMap or (config is not None and (config.caBundle or config.secretRef))
    if source.insecureSkipVerify and trusted:
        text = "the server's certificate is not checked at all, so the certificate authorities have no effect"
        yield finding.warning((*path, "insecureSkipVerify"), text, CERTIFICATES)


def _cert_config(config: CertConfig, url: str, path: Path) -> Iterator[Finding]:
    if url and not url.lower().startswith("https:"):
        yield finding.forbidden(path, "certConfig needs an https URL", CERTIFICATES)
    if config.caBundle is not None and not pem.bundle(config.caBundle):
        yield finding.secret_invalid((*path, "caBundle"), "not a PEM bundle", CERTIFICATES)
    has_cert = config.cert is not None and config.cert.secretRef is not None
    has_key = config.key is not None and config.key.secretRef is not None
    if has_cert != has_key:
        missing = "key" if has_cert else "cert"
        yield finding.required((*path, missing), CERTIFICATES, "cert and key go together")


def _source_ref(reference: SourceReference, path: Path, settings: Settings) -> Iterator[Finding]:
    kinds = ("DataSource", "Image") if settings.image_source_ref else ("DataSource",)
    if reference.kind and reference.kind not in kinds:
        yield finding.unsupported((*path, "kind"), reference.kind, kinds, SOURCE)
    group = IMAGE_GROUP if reference.kind == "Image" and settings.image_source_ref else CDI_GROUP
    if reference.apiGroup and reference.apiGroup != group:
        message = f'Unsupported value: {finding.show(reference.apiGroup)}: only "{group}"'
        yield Finding(path=(*path, "apiGroup"), message=message, rule=SOURCE, cause=Cause.NOT_SUPPORTED)


def _claim(spec: DataVolumeSpec, path: Path) -> Iterator[Finding]:
    if spec.pvc is None and spec.storage is None:
        yield finding.required((*path, "pvc"), CLAIM, "give pvc or storage (Missing Data volume PVC or Storage)")
    elif spec.pvc is not None and spec.storage is not None:
        yield finding.forbidden((*path, "storage"), "pvc is set too", CLAIM)
    if spec.pvc is not None:
        yield from _access_modes(spec.pvc, (*path, "pvc", "accessModes"))
        yield from _size(spec.pvc, (*path, "pvc"), needed=True)
    if spec.storage is not None:
        source = spec.source
        copies = spec.sourceRef is not None or (source is not None and any(getattr(source, name) is not None for name in COPIES))
        yield from _size(spec.storage, (*path, "storage"), needed=not copies and not is_populated_from_outside(spec))


def _access_modes(claim: PersistentVolumeClaimSpec, path: Path) -> Iterator[Finding]:
    count = len(claim.accessModes or ())
    if count == 0:
        yield finding.required(path, CLAIM, "a pvc names exactly one access mode; storage may leave it to the StorageClass")
    elif count > 1:
        yield finding.too_many(path, count, 1, CLAIM)


def _size(claim: StorageSpec, path: Path, *, needed: bool) -> Iterator[Finding]:
    place = (*path, "resources", "requests", "storage")
    size = (claim.resources.requests or {}).get("storage") if claim.resources else None
    if size is None:
        if needed:
            yield finding.required(place, CLAIM)
    elif quantity.parse(size) <= 0:
        yield finding.invalid(place, size, "must be greater than 0", CLAIM)
    elif quantity.parse(size) < quantity.parse("1Mi"):
        yield finding.invalid(place, size, "must be at least 1Mi", CLAIM)
    yield from selector_findings(claim.selector, (*path, "selector"), CLAIM)


def _content(spec: DataVolumeSpec, path: Path) -> Iterator[Finding]:
    if spec.contentType != "archive":
        return
    for name in ("registry", "blank"):
        if spec.source is not None and getattr(spec.source, name) is not None:
            yield finding.invalid((*path, "contentType"), "archive", f"a {name} source cannot be an archive", CONTENT)
    claim = spec.pvc or spec.storage
    if claim is not None and claim.volumeMode == "Block":
        yield finding.invalid((*path, "contentType"), "archive", "an archive needs the volumeMode Filesystem", CONTENT)


def _class(spec: DataVolumeSpec, path: Path) -> Iterator[Finding]:
    if spec.storageClassName is None:
        return
    place = "storage" if spec.pvc is None and spec.storage is not None else "pvc"
    claim = spec.pvc or spec.storage
    if claim is not None and claim.storageClassName not in (None, spec.storageClassName):
        yield finding.forbidden((*path, "storageClassName"), f"{place}.storageClassName names another class", CLASS)
    else:
        text = f"storageClassName belongs into {place}; it is read as {place}.storageClassName"
        yield finding.warning((*path, "storageClassName"), text, CLASS)
