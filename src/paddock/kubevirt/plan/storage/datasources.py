"""The status of a DataSource (docs/spec/kubevirt.md 5.5). Pure."""

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

import msgspec

from paddock.kubevirt.kinds.datasource import DataSource, DataSourceSource, source_type
from paddock.kubevirt.kinds.datavolume_kind import DataCondition, DataVolume
from paddock.kubevirt.plan.storage import certificates
from paddock.kubevirt.plan.storage.contents import Lookup, UnclearContent, resolved

_READY = "DataSource is ready to be consumed"
# Whether a claim is there, and whether a snapshot is ready (None: not there), by namespace and name.
HasClaim = Callable[[str, str], bool]
HasSnapshot = Callable[[str, str], bool | None]


class SourceLookup(msgspec.Struct, frozen=True):
    """The objects that a DataSource may name, by namespace and name."""

    has_claim: HasClaim
    has_snapshot: HasSnapshot
    # what a Secret or a ConfigMap holds
    secret: Callable[[str, str], Mapping[str, bytes] | None]
    config_map: Callable[[str, str], Mapping[str, bytes] | None]
    # whoever imports can show a client's certificate
    shows_certificates: bool = True


def report(source: DataSource, lookup: Lookup, around: SourceLookup) -> tuple[DataSourceSource | None, list[DataCondition]]:
    """Return its source, if it can be resolved, and the conditions."""
    found = resolved(source, lookup)
    if isinstance(found, UnclearContent):
        return None, [_false("Ready", found.reason, found.message), _false("Running", found.reason, found.message)]
    return found, list(_conditions(found, source.metadata.namespace or "", lookup, around))


def _conditions(data_source_source: DataSourceSource, namespace: str, lookup: Lookup, around: SourceLookup) -> Iterator[DataCondition]:
    if data_source_source.pvc is not None:
        volume = lookup.data_volume(data_source_source.pvc.namespace, data_source_source.pvc.name)
        yield from _of_claim(volume, around.has_claim(data_source_source.pvc.namespace, data_source_source.pvc.name))
    elif data_source_source.snapshot is not None:
        ready = around.has_snapshot(data_source_source.snapshot.namespace, data_source_source.snapshot.name)
        if ready is None:
            yield _false("Ready", "NotFound", "Snapshot not found")
        elif not ready:
            yield _false("Ready", "SnapshotNotReady", "Snapshot is not ready")
        else:
            yield _ready(_READY)
        yield _false("Running", "NotFound" if ready is None else "Ready", "")
    else:
        trouble = _trouble(data_source_source, namespace, around)
        yield _address(data_source_source) if trouble is None else _false("Ready", *trouble)
        yield _false("Running", "Ready" if trouble is None else trouble[0], "")


def _trouble(data_source_source: DataSourceSource, namespace: str, around: SourceLookup) -> tuple[str, str] | None:
    """Return the known obstacle of an address before anything is fetched."""
    http = data_source_source.http
    if http is None:
        return None
    config = http.certConfig
    if config is not None and (config.cert is not None or config.key is not None) and not around.shows_certificates:
        return "ClientCertificateUnsupported", "CDI cannot show a client's certificate; leave certConfig.cert and certConfig.key out"
    return certificates.trouble(http, lambda name: around.secret(namespace, name), lambda name: around.config_map(namespace, name))


def _address(data_source_source: DataSourceSource) -> DataCondition:
    # Whether it can be fetched is for each DataVolume to say: a server that is away for a minute is no fault of the name.
    kind = source_type(data_source_source)
    return _ready(f"{_READY}: an import over {kind} of {_shown(getattr(getattr(data_source_source, kind), 'url', None) or '')}")


def _of_claim(volume: DataVolume | None, is_there: bool) -> Iterator[DataCondition]:
    phase = (volume.status.phase if volume is not None and volume.status is not None else None) or ("Pending" if volume is not None else "")
    if not is_there and not phase:
        yield _false("Ready", "NotFound", "PVC not found")
        yield _false("Running", "NotFound", "PVC not found")
    elif phase in ("", "Succeeded"):
        yield _ready(_READY) if is_there else _false("Ready", "NotFound", "PVC not found")
        yield _false("Running", "Ready", "")
    else:
        progress = (volume.status.progress if volume is not None and volume.status is not None else None) or "N/A"
        yield _false("Ready", phase, f"Import DataVolume phase {phase}")
        status = "True" if phase.endswith("InProgress") else "False"
        yield DataCondition(type="Running", status=status, reason=phase, message=f"Import DataVolume progress {progress}")


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _ready(message: str) -> DataCondition:
    return DataCondition(type="Ready", status="True", reason="Ready", message=message)


def _false(type: str, reason: str, message: str) -> DataCondition:
    return DataCondition(type=type, status="False", reason=reason, message=message or None)
