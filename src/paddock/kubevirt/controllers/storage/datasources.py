"""DataSources: each says whether what it names is there."""

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.configmap import values
from paddock.kubernetes.core.secret import decoded
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.storage import reporting
from paddock.kubevirt.controllers.storage.targets import DATA_SOURCES, SNAPSHOTS, TYPED_CONFIG_MAPS, TYPED_SECRETS
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.datasource import DataSourceStatus, source_type
from paddock.kubevirt.plan.storage import datasources
from paddock.kubevirt.plan.storage.datasources import SourceLookup


class DataSourceReconciler(KindReconciler):
    def __init__(self, client: Client, view: StorageView, machinery: Machinery) -> None:
        super().__init__(view.data_sources)
        self._view = view
        self._clock = machinery.clock
        self._statuses = StatusWriter(client, DATA_SOURCES, view.data_sources.expectations)
        self._around = SourceLookup(
            has_claim=lambda namespace, name: view.claims.cache.get(Key(namespace, name)) is not None,
            has_snapshot=self._has_snapshot,
            secret=lambda namespace, name: _secret(view, Key(namespace, name)),
            config_map=lambda namespace, name: _config_map(view, Key(namespace, name)),
        )

    async def work(self, seen: CachedObject) -> Outcome:
        """Look at what a DataSource names."""
        source = seen.read(DATA_SOURCES)
        found, wanted = datasources.report(source, self._view.lookup, self._around)
        before = source.status or DataSourceStatus()
        conditions = reporting.conditions(before.conditions, wanted, ages.timestamp(self._clock.seconds()))
        status = DataSourceStatus(source=found, sourceType=source_type(found) if found is not None else None, conditions=conditions)
        await self._statuses.write(seen, status)
        return DONE

    def _has_snapshot(self, namespace: str, name: str) -> bool | None:
        found = self._view.read(self._view.snapshots, SNAPSHOTS, Key(namespace, name))
        return None if found is None else bool(found.status is not None and found.status.readyToUse)


def _secret(view: StorageView, key: Key) -> dict[str, bytes] | None:
    found = view.read(view.secrets, TYPED_SECRETS, key)
    return None if found is None else decoded(found)


def _config_map(view: StorageView, key: Key) -> dict[str, bytes] | None:
    found = view.read(view.config_maps, TYPED_CONFIG_MAPS, key)
    return None if found is None else values(found)
