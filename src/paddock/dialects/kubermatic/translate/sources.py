"""The source of a DataVolume's content, in CDI's terms (docs/spec/kubermatic.md 2.2 and 2.3).

CDI's DataSource knows claims and snapshots only. A DataSource with an address is resolved: the address goes into the DataVolume,
and certificate authorities into a ConfigMap beside it.
"""

from typing import Any, TypeVar

import msgspec

from paddock.dialects.kubermatic.kinds.image import CatalogImage
from paddock.dialects.kubermatic.translate.refusals import (
    ClientCertificateUnsupported,
    CrossNamespaceSecret,
    DataSourceNotFound,
    DataSourceNotReady,
)
from paddock.kubernetes.core.configmap import ConfigMap, values
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.fieldrecord import FieldRecord
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference, Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds import pem
from paddock.kubevirt.kinds.datasource import CDI_SOURCES, DataSource, source_type
from paddock.kubevirt.kinds.datavolume import (
    CertConfig,
    DataVolumeSource,
    GcsSource,
    HttpSource,
    NamespacedReference,
    RegistrySource,
    S3Source,
    SourceReference,
)
from paddock.kubevirt.kinds.extendedsources import MANAGED_BY, golden_name, is_cached, needs_secret

R = TypeVar("R", bound=Resource)
CA_KEY = "ca.pem"
_CERTIFICATE_ENDS = (".crt", ".pem")


class ResolvedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source for CDI, the DataSource it was taken from, and the ConfigMaps it needs."""

    source: DataVolumeSource
    name: str = ""
    objects: tuple[ConfigMap, ...] = ()


class Resolver:
    """Resolves the sources of the DataVolumes of one namespace."""

    def __init__(self, namespace: str, object_set: ObjectSet, rendering: Rendering) -> None:
        self.namespace = namespace
        self.object_set = object_set
        self.rendering = rendering
        self._records: dict[str, FieldRecord[Any]] = {}

    def losses(self) -> tuple[Loss, ...]:
        """Return the losses of the resolved sources."""
        return tuple(loss for record in self._records.values() for loss in record.settle())

    def _record(self, source: R) -> FieldRecord[R]:
        return self._records.setdefault(f"{source.kind} {namespace_of(source)}/{source.metadata.name}", FieldRecord(source))

    def reference(self, reference: SourceReference, path: Path) -> ResolvedSource | None:
        """Return CDI's form of a reference; None when CDI itself can follow it."""
        namespace = reference.namespace or self.namespace
        if reference.kind == "Image":
            return self._image(namespace, reference.name, path)
        found = self.object_set.get(DataSource, namespace, reference.name)
        if found is None:
            # Without the group it is CDI's own form, and what is meant may well be in the cluster, unless the cluster was read.
            if reference.apiGroup or self.object_set.complete:
                raise DataSourceNotFound(path, "DataSource", f"{namespace}/{reference.name}")
            return None
        found = self._followed(found, path)
        if source_type(found.spec.source) in CDI_SOURCES:
            return None
        return self._imported(found, path)

    def inline(self, source: DataVolumeSource, name: str, path: Path) -> ResolvedSource | None:
        """Return CDI's form of a source with certificates; None when CDI takes it as it is."""
        if source.http is None or source.http.certConfig is None:
            return None
        http, objects = self._trusting(source.http, _Owner(name, self.namespace), path)
        return ResolvedSource(source=msgspec.structs.replace(source, http=http), objects=objects)

    def _followed(self, source: DataSource, path: Path) -> DataSource:
        """The DataSource that another one names; it is followed once, and within a namespace only."""
        to = source.spec.source.dataSource
        if to is None:
            return source
        own, name = namespace_of(source), f"{namespace_of(source)}/{source.metadata.name}"
        if to.namespace != own:
            raise DataSourceNotReady(path, name, "CrossNamespaceReference", f"it names the DataSource {to.namespace}/{to.name}")
        if to.name == source.metadata.name:
            raise DataSourceNotReady(path, name, "SelfReference", "it names itself")
        found = self.object_set.get(DataSource, to.namespace, to.name)
        if found is None:
            raise DataSourceNotReady(path, name, "NotFound", f"it names the DataSource {to.name}, which is not there")
        if found.spec.source.dataSource is not None:
            raise DataSourceNotReady(path, name, "MaxReferenceDepthReached", f"{to.name} names another DataSource in turn")
        return found

    def _imported(self, data_source: DataSource, path: Path) -> ResolvedSource:
        """An address, for the DataVolume itself or for the copy that all share."""
        namespace, name = namespace_of(data_source), f"{namespace_of(data_source)}/{data_source.metadata.name}"
        if is_cached(data_source):
            copy = NamespacedReference(namespace=namespace, name=golden_name(data_source))
            return ResolvedSource(source=DataVolumeSource(pvc=copy), name=name)
        if namespace != self.namespace and needs_secret(data_source.spec.source):
            raise CrossNamespaceSecret(path, name, self.namespace)
        kind = source_type(data_source.spec.source)
        member: Any = whole(getattr(self._record(data_source).view.spec.source, kind))
        objects: tuple[ConfigMap, ...] = ()
        if isinstance(member, HttpSource):
            owner = _Owner(data_source.metadata.name, namespace, data_source if namespace == self.namespace else None)
            member, objects = self._trusting(member, owner, path)
        return ResolvedSource(source=DataVolumeSource(**{kind: member}), name=name, objects=objects)

    def golden(self, data_source: DataSource) -> ResolvedSource:
        """The source of the copy that all consumers of a cached DataSource share, for a resolver of its own namespace."""
        plain = msgspec.structs.replace(data_source.metadata, annotations=None)
        return self._imported(msgspec.structs.replace(data_source, metadata=plain), ())

    def _image(self, namespace: str, name: str, path: Path) -> ResolvedSource:
        found = self.object_set.get(CatalogImage, namespace, name)
        if found is None:
            raise DataSourceNotFound(path, "Image", f"{namespace}/{name}")
        record = self._record(found)
        for words in ("type", "readableName", "readableDescription"):
            # They describe the entry of the catalogue, and nothing of what is made of it.
            record.take("spec", words)
        spec, full = record.view.spec, f"{namespace}/{name}"
        secret = spec.credentials.name if spec.credentials is not None else None
        if secret is not None and namespace != self.namespace:
            raise CrossNamespaceSecret(path, full, self.namespace)
        source = DataVolumeSource()
        if spec.http is not None:
            source = DataVolumeSource(http=HttpSource(url=spec.http.url, secretRef=secret))
        elif spec.registry is not None:
            source = DataVolumeSource(registry=RegistrySource(url=spec.registry.url, secretRef=secret))
        elif spec.s3 is not None:
            source = DataVolumeSource(s3=S3Source(url=spec.s3.url, secretRef=secret))
        elif spec.gcs is not None:
            source = DataVolumeSource(gcs=GcsSource(url=spec.gcs.url, secretRef=secret))
        elif spec.pvc is not None:
            source = DataVolumeSource(pvc=NamespacedReference(namespace=spec.pvc.namespace or namespace, name=spec.pvc.name))
        return ResolvedSource(source=source, name=full)

    def _trusting(self, http: HttpSource, owner: "_Owner", path: Path) -> tuple[HttpSource, tuple[ConfigMap, ...]]:
        """An HTTP source in CDI's words, with the ConfigMap of the certificate authorities that it trusts."""
        config = http.certConfig or CertConfig()
        if config.cert is not None or config.key is not None:
            raise ClientCertificateUnsupported(path, f"{owner.namespace}/{owner.name}")
        away = owner.namespace != self.namespace
        if config.caBundle is None and config.secretRef is None and not (http.certConfigMap and away):
            return msgspec.structs.replace(http, certConfig=None), ()
        trusted = "".join(dict.fromkeys(self._authorities(http, config, owner, path)))
        made = ConfigMap(
            apiVersion="v1",
            kind="ConfigMap",
            metadata=ObjectMeta(
                name=f"{owner.name}-ca",
                namespace=self.namespace,
                labels={MANAGED_BY: self.rendering.product},
                ownerReferences=owner.references(),
            ),
            data={CA_KEY: trusted},
        )
        return msgspec.structs.replace(http, certConfig=None, certConfigMap=made.metadata.name), (made,)

    def _authorities(self, http: HttpSource, config: CertConfig, owner: "_Owner", path: Path) -> list[str]:
        """The bundles to trust, in a fixed order: inline, from the Secret, from the ConfigMap."""
        full, bundles = f"{owner.namespace}/{owner.name}", []
        if config.caBundle is not None:
            bundles.append(config.caBundle)
        if config.secretRef is not None:
            secret = self.object_set.get(Secret, owner.namespace, config.secretRef.name)
            if secret is None:
                why = f"the Secret {config.secretRef.name} is not there"
                raise DataSourceNotReady(path, full, "SecretNotFound", why)
            bundles.append(pem.first(decoded(secret), pem.AUTHORITIES).decode(errors="replace"))
        if http.certConfigMap:
            config_map = self.object_set.get(ConfigMap, owner.namespace, http.certConfigMap)
            if config_map is None:
                raise DataSourceNotReady(path, full, "ConfigMapNotFound", f"the ConfigMap {http.certConfigMap} is not there")
            bundles.extend(_certificates(config_map))
        plain = [pem.bundle(bundle) for bundle in bundles]
        if "" in plain or not plain:
            raise DataSourceNotReady(path, full, "InvalidCertificate", "the certificate authorities to trust are not PEM")
        return plain


class _Owner(msgspec.Struct, frozen=True):
    """The owner of certificate authorities: a DataSource, or the DataVolume itself."""

    name: str
    namespace: str
    source: DataSource | None = None

    def references(self) -> list[OwnerReference] | None:
        """The DataSource as the owner of what is made for it; an object without UID owns nothing."""
        uid = self.source.metadata.uid if self.source is not None else None
        if not uid:
            return None
        return [
            OwnerReference(
                apiVersion="cdi.kubevirt.io/v1beta1",
                kind="DataSource",
                name=self.name,
                uid=uid,
                controller=True,
                blockOwnerDeletion=True,
            )
        ]


def _certificates(config_map: ConfigMap) -> list[str]:
    """The values of a ConfigMap that CDI adds to the certificate authorities."""
    held = values(config_map)
    return [held[key].decode(errors="replace") for key in sorted(held) if key.endswith(_CERTIFICATE_ENDS)]
