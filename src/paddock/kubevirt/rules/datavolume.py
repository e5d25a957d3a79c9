"""The rules of what a DataVolume asks for, wherever it stands (docs/spec/kubevirt.md 5.1, docs/spec/kubermatic.md 1.2 and 1.3).

A DataVolume, a machine's template of one, a DataImportCron and a DataSource share these rules. Each is a pure function of a value
and its place; `data_volume_rules` and `source_rules` make them rules of a kind, which says where its values are.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from paddock.base import quantity
from paddock.kubernetes.meta.selectors import selector_findings
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec, StorageSpec
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, CrossFieldRule
from paddock.kubevirt.kinds import pem
from paddock.kubevirt.kinds.datavolume import (
    CDI_GROUP,
    DATA_SOURCES,
    CertConfig,
    DataVolumeSource,
    DataVolumeSpec,
    HttpSource,
    RegistrySource,
    SourceReference,
)

SOURCE = "kubevirt/data-volume-source"
CLAIM = "kubevirt/data-volume-claim"
CLASS = "kubevirt/storage-class-place"
CONTENT = "kubevirt/archive"
REGISTRY = "kubevirt/registry-source"
URL = "kubevirt/source-url"
CERTIFICATES = "kubevirt/certificates"
IMAGE_GROUP = "virtualization.k8c.io"
# Which sources take their size from what they copy.
COPIES = ("pvc", "snapshot")
_EXACTLY_ONE = "give exactly one of source and sourceRef"
_SCHEMES = {
    "http": ("http", "https"),
    "s3": ("http", "https", "s3"),
    "gcs": ("gs", "http", "https"),
    "imageio": ("http", "https"),
    "registry": ("docker", "oci-archive"),
}

# Where a kind keeps the values that a rule looks at.
Places = Callable[[Any], Iterable[tuple[Path, Any]]]
Check = Callable[[Any, Path, AdmissionSettings], Iterator[Finding]]


def data_volume_rules(places: Places, cel: dict[str, tuple[Cel, ...]] | None = None) -> tuple[CrossFieldRule, ...]:
    """The rules of a kind that has DataVolume specs at these places; `cel` has forms of them by rule id."""

    def sources(value: Any) -> Iterator[tuple[Path, Any]]:
        for path, spec in places(value):
            if spec.source is not None:
                yield (*path, "source"), spec.source

    return (*_rules(_SPEC_CHECKS, places, cel or {}), *_rules(_SOURCE_CHECKS, sources, cel or {}))


def source_rules(places: Places) -> tuple[CrossFieldRule, ...]:
    """The rules of a kind that has sources at these places, whatever members they have."""
    return _rules(_SOURCE_CHECKS, places, {})


def _rules(checks: dict[str, Check], places: Places, cel: dict[str, tuple[Cel, ...]]) -> tuple[CrossFieldRule, ...]:
    return tuple(
        CrossFieldRule(name, " ".join((check.__doc__ or "").split()), _spread(check, places), cel.get(name, ()), warns=name in _WARNING)
        for name, check in checks.items()
    )


def _spread(check: Check, places: Places) -> Callable[[Any, AdmissionSettings], Iterator[Finding]]:
    def everywhere(value: Any, settings: AdmissionSettings) -> Iterator[Finding]:
        for path, part in places(value):
            yield from check(part, path, settings)

    return everywhere


def is_populated_from_outside(spec: DataVolumeSpec) -> bool:
    """Return whether something other than CDI fills the claim."""
    claim = spec.pvc or spec.storage
    return claim is not None and (claim.dataSource is not None or claim.dataSourceRef is not None)


def given_members(source: Object) -> list[str]:
    """The members of a source that are set."""
    return [name for name in source.__struct_fields__ if getattr(source, name) is not None]


def one_source(spec: DataVolumeSpec, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A DataVolume has exactly one of source and sourceRef, unless the claim itself names what fills it; a source has one member."""
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
        yield from _one_member(spec.source, place)
    if spec.sourceRef is not None:
        yield from _source_ref(spec.sourceRef, (*path, "sourceRef"), settings)


def _one_member(source: DataVolumeSource, path: Path) -> Iterator[Finding]:
    given = [name for name in DATA_SOURCES if getattr(source, name) is not None]
    if not given:
        yield Finding(path=path, message="Invalid value: Missing dataVolume valid source", rule=SOURCE)
    elif len(given) > 1:
        yield Finding(path=path, message=f"Invalid value: Multiple dataVolume sources: {', '.join(given)}", rule=SOURCE)


def _source_ref(reference: SourceReference, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    kinds = ("DataSource", "Image") if settings.image_source_ref else ("DataSource",)
    if reference.kind and reference.kind not in kinds:
        yield finding.unsupported((*path, "kind"), reference.kind, kinds, SOURCE)
    group = IMAGE_GROUP if reference.kind == "Image" and settings.image_source_ref else CDI_GROUP
    if reference.apiGroup and reference.apiGroup != group:
        message = f'Unsupported value: {finding.show(reference.apiGroup)}: only "{group}"'
        yield Finding(path=(*path, "apiGroup"), message=message, rule=SOURCE, cause=CauseType.NOT_SUPPORTED)


def one_claim(spec: DataVolumeSpec, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A DataVolume has exactly one of pvc and storage; pvc names one access mode and a size, storage a size unless it copies."""
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


def archives_have_files(spec: DataVolumeSpec, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """An archive is unpacked into a filesystem, and registries and blank disks hold none."""
    if spec.contentType != "archive":
        return
    for name in ("registry", "blank"):
        if spec.source is not None and getattr(spec.source, name) is not None:
            yield finding.invalid((*path, "contentType"), "archive", f"a {name} source cannot be an archive", CONTENT)
    claim = spec.pvc or spec.storage
    if claim is not None and claim.volumeMode == "Block":
        yield finding.invalid((*path, "contentType"), "archive", "an archive needs the volumeMode Filesystem", CONTENT)


def class_stands_in_claim(spec: DataVolumeSpec, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A storageClassName beside pvc or storage is read as if it stood in it (a warning)."""
    if spec.storageClassName is None:
        return
    place = "storage" if spec.pvc is None and spec.storage is not None else "pvc"
    claim = spec.pvc or spec.storage
    if claim is not None and claim.storageClassName not in (None, spec.storageClassName):
        yield finding.forbidden((*path, "storageClassName"), f"{place}.storageClassName names another class", CLASS)
    else:
        text = f"storageClassName belongs into {place}; it is read as {place}.storageClassName"
        yield finding.warning((*path, "storageClassName"), text, CLASS)


def addresses_are_usable(source: Object, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """An address has a scheme that fits its source, a host, and neither user nor password."""
    for name in given_members(source):
        if name in _SCHEMES:
            url = getattr(getattr(source, name), "url", None)
            yield from _url(url or "", (*path, name, "url"), _SCHEMES[name])


def _url(url: str, path: Path, schemes: tuple[str, ...]) -> Iterator[Finding]:
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


def registries_have_one_address(source: Object, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """A registry source has a url or, with the pullMethod node, an imageStream."""
    registry = getattr(source, "registry", None)
    place = (*path, "registry")
    if not isinstance(registry, RegistrySource):
        return
    if registry.url and registry.imageStream:
        yield finding.forbidden((*place, "imageStream"), "url is set too", REGISTRY)
    elif not registry.url and not registry.imageStream:
        yield finding.required((*place, "url"), REGISTRY, "give url or imageStream")
    elif registry.imageStream and registry.pullMethod != "node":
        why = "an imageStream needs the pullMethod node"
        yield finding.invalid((*place, "pullMethod"), registry.pullMethod or "pod", why, REGISTRY)


def certificates_fit(source: Object, path: Path, settings: AdmissionSettings) -> Iterator[Finding]:
    """certConfig is for https, a CA bundle is PEM, and a client certificate comes with its key."""
    http = getattr(source, "http", None)
    place = (*path, "http")
    if not isinstance(http, HttpSource):
        return
    config = http.certConfig
    if config is not None:
        yield from _cert_config(config, http.url, (*place, "certConfig"))
        if settings.target == "cluster" and (config.cert is not None or config.key is not None):
            text = "CDI cannot present a client certificate: on a cluster this fails with ClientCertificateUnsupported"
            yield finding.warning((*place, "certConfig"), text, CERTIFICATES)
    trusted = http.certConfigMap or (config is not None and (config.caBundle or config.secretRef))
    if http.insecureSkipVerify and trusted:
        text = "the server's certificate is not checked at all, so the certificate authorities have no effect"
        yield finding.warning((*place, "insecureSkipVerify"), text, CERTIFICATES)


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


_SPEC_CHECKS: dict[str, Check] = {
    SOURCE: one_source,
    CLAIM: one_claim,
    CONTENT: archives_have_files,
    CLASS: class_stands_in_claim,
}
_WARNING = frozenset((CLASS, CERTIFICATES))
_SOURCE_CHECKS: dict[str, Check] = {
    URL: addresses_are_usable,
    REGISTRY: registries_have_one_address,
    CERTIFICATES: certificates_fit,
}
