"""Objects as rows of tables, each worked out once per revision.

`kubectl get` asks for tables, and a table of ten thousand objects is mostly cells that have not changed since the last one. What
is kept of an object is small: its cells as JSON, cut where its age stands, and where its metadata ends in its bytes.
"""

from typing import NamedTuple

from paddock.kubernetes.meta.tables import Row, TableForm
from paddock.server.objects.encoding import decode, metadata_end
from paddock.server.objects.views import ViewedStore
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite, Store, StoredValue, StoreKey


class _Kept(NamedTuple):
    revision: int
    row: Row
    end: int


class TableLayout:
    """The table form of one resource, with the rows of its objects that clients requested."""

    def __init__(self, resource: ServedResource, *, has_views: bool) -> None:
        self.resource = resource
        self.form = TableForm(resource.columns, resource.cells)
        # Nobody hears of it when a view goes.
        self._keeps = self.form.lasts and not has_views
        self._kept: dict[StoreKey, _Kept] = {}

    def row(self, served: bytes, now: float, record: StoredValue | None = None) -> tuple[int, Row, int]:
        """Of an object: its revision, its cells, and where its metadata ends in the bytes. `record`: where it comes from."""
        kept = None if record is None else self._kept.get(record.key)
        if kept is None or record is None or kept.revision != record.revision:
            kept = _Kept(0 if record is None else record.revision, self.form.row(decode(served), now), metadata_end(served))
            if record is not None and self._keeps:
                self._kept[record.key] = kept
        return kept

    def forget(self, key: StoreKey) -> None:
        self._kept.pop(key, None)


class ResourceTables:
    """The tables of all resources; follows the store to forget what has changed."""

    def __init__(self, store: Store, views: ViewedStore) -> None:
        self._views = views
        self._shown: dict[str, dict[str, TableLayout]] = {}
        store.follow(self._changed)

    def of(self, resource: ServedResource) -> TableLayout:
        """The table of a resource; of another edition of it, another one."""
        versions = self._shown.setdefault(resource.collection, {})
        shown = versions.get(resource.api_version)
        if shown is None or shown.resource is not resource:
            shown = versions[resource.api_version] = TableLayout(resource, has_views=self._views.has_views(resource.collection))
        return shown

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            for shown in self._shown.get(change.key.collection, {}).values():
                shown.forget(change.key)
