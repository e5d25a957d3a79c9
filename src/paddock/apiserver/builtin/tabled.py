"""Resources of the kinds of the table (docs/design/0013-table-of-kinds.md): what the table says, and each kind's behaviour."""

from collections.abc import Callable, Iterator
from typing import Any

from paddock.apiserver.builtin import (
    autoscalers,
    claims,
    clustertables,
    controllers,
    ingresses,
    nodes,
    pods,
    podtables,
    storagekinds,
    tables,
    workloads,
)
from paddock.apiserver.builtin import stored as kept
from paddock.apiserver.builtin.tables import Cells
from paddock.apiserver.kindtable import rows, table
from paddock.apiserver.kindtable.pipeline import TablePipeline
from paddock.apiserver.kindtable.table import KindRow
from paddock.apiserver.resources.declared import collection_of
from paddock.apiserver.resources.resource import ServedResource, Subresource
from paddock.apiserver.resources.strategy import Strategy
from paddock.schema.kind import Scale

Data = dict[str, Any]
_SCALE = Scale(selector=".spec.selector")
# What `paddock up` refuses: it runs machines, not pods.
REFUSED = (
    ("", "Pod"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("", "Pod"): pods.StoredPodStrategy(),
    ("autoscaling", "HorizontalPodAutoscaler"): autoscalers.AutoscalerStrategy(),
    ("", "Node"): nodes.NodeStrategy(),
    ("", "PersistentVolume"): claims.PersistentVolumeStrategy(),
    ("scheduling.k8s.io", "PriorityClass"): kept.PriorityStrategy(),
    **controllers.STRATEGIES,
    **ingresses.STRATEGIES,
    **storagekinds.STRATEGIES,
    **workloads.STRATEGIES,
}
_CELLS: dict[tuple[str, str], Cells] = {**podtables.CELLS, **ingresses.CELLS, **clustertables.CELLS, **tables.CELLS}
PLACES = tuple(STRATEGIES)
_POD_PLACES = ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName", "hostNetwork")
_SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (*(f"spec.{name}" for name in _POD_PLACES), "status.phase", "status.podIP", "status.nominatedNodeName"),
    ("apps", "ReplicaSet"): ("status.replicas",),
    ("", "ReplicationController"): ("status.replicas",),
    ("batch", "Job"): ("status.successful",),
    ("", "Node"): ("spec.unschedulable",),
}
_FLAGS = {("", "Pod"): ("spec.hostNetwork",), ("", "Node"): ("spec.unschedulable",)}
_STORED_FIELDS = {("batch", "Job"): {"status.successful": "status.succeeded"}}
Convert = Callable[[Data], Data]
# of versions that are not stored: to the stored form, and from it
_CONVERSIONS: dict[tuple[str, str, str], tuple[Convert, Convert]] = {
    ("autoscaling", "HorizontalPodAutoscaler", "v1"): (autoscalers.to_stored, autoscalers.from_stored),
}


def resources(*, stored: bool) -> Iterator[ServedResource]:
    """The resources of the table; workloads are `stored`, or refused with the reason."""
    for place in PLACES:
        row = table.kinds()[place]
        refused = not stored and place in REFUSED
        strategy = pods.RefusedPodStrategy(row.group, row.plural, pods.WHY_REFUSED) if refused else STRATEGIES[place]
        for version, message in row.messages.items():
            yield _resource(row, version, TablePipeline(message, (row.group, version, row.kind), judging=not refused), strategy)


def _resource(row: KindRow, version: str, pipeline: TablePipeline, strategy: Strategy) -> ServedResource:
    place, storage = (row.group, row.kind), next(iter(row.messages))
    to_stored, from_stored = _CONVERSIONS.get((*place, version), (None, None))
    names = [name for name, _, _ in row.subresources]
    return ServedResource(
        group=row.group,
        version=version,
        plural=row.plural,
        kind=row.kind,
        collection=collection_of(row.group, row.plural),
        pipeline=pipeline,
        strategy=strategy,
        stored_version=f"{row.group}/{storage}" if row.group else storage,
        singular=row.kind.lower(),
        namespaced=not row.cluster,
        short_names=row.short_names,
        categories=row.categories,
        status="status" in names,
        scale=_SCALE if "scale" in names else None,
        subresources=_subresources(row),
        columns=rows.columns(row),
        cells=_CELLS.get(place),
        selectable=_SELECTABLE.get(place, ()),
        stored_fields=_STORED_FIELDS.get(place, {}),
        flags=_FLAGS.get(place, ()),
        strategic=True,
        unconditional_update=place != ("policy", "PodDisruptionBudget"),
        declared=True,
        to_stored=to_stored,
        from_stored=from_stored,
    )


def _subresources(row: KindRow) -> tuple[Subresource, ...]:
    if row.kind == "Pod":
        return pods.subresources(row.subresources)
    scale = ("Scale", "autoscaling/v1")
    return tuple(Subresource(name, tuple(verbs.split()), *(scale if name == "scale" else ())) for name, _, verbs in row.subresources)
