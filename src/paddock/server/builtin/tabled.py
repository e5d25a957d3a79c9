"""Resources of the kinds of the table (docs/design/0013-table-of-kinds.md): what the table says, and each kind's behaviour."""

from collections.abc import Callable, Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema.kind import Scale
from paddock.server.admission.mutationrules import MutatingBindingStrategy, MutatingPolicyStrategy
from paddock.server.admission.policyrules import PolicyBindingStrategy, PolicyStrategy
from paddock.server.admission.registrations import WebhookStrategy
from paddock.server.builtin import (
    apiservices,
    autoscalers,
    claims,
    clustertables,
    components,
    controllers,
    csr,
    devices,
    endpoints,
    events,
    flowcontrol,
    ingresses,
    networkpolicies,
    nodes,
    pods,
    podtables,
    quotas,
    rbacrules,
    servicenetworks,
    storagekinds,
    tables,
    workloads,
)
from paddock.server.builtin import stored as kept
from paddock.server.builtin.tables import Cells
from paddock.server.kindtable import rows, table
from paddock.server.kindtable.pipeline import TablePipeline
from paddock.server.kindtable.table import KindRow
from paddock.server.resources.declared import collection_of
from paddock.server.resources.resource import ServedResource, Subresource
from paddock.server.resources.strategy import PLAIN, Strategy
from paddock.server.security.rbac import Rbac

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
_REGISTRATION = "admissionregistration.k8s.io"
_LEASE = ("coordination.k8s.io", "Lease")
STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("", "Pod"): pods.StoredPodStrategy(),
    ("autoscaling", "HorizontalPodAutoscaler"): autoscalers.AutoscalerStrategy(),
    ("", "Node"): nodes.NodeStrategy(),
    ("", "PersistentVolume"): claims.PersistentVolumeStrategy(),
    ("scheduling.k8s.io", "PriorityClass"): kept.PriorityStrategy(),
    ("", "ComponentStatus"): PLAIN,
    _LEASE: PLAIN,
    (_REGISTRATION, "MutatingWebhookConfiguration"): WebhookStrategy(),
    (_REGISTRATION, "ValidatingWebhookConfiguration"): WebhookStrategy(),
    (_REGISTRATION, "ValidatingAdmissionPolicy"): PolicyStrategy(),
    (_REGISTRATION, "ValidatingAdmissionPolicyBinding"): PolicyBindingStrategy(),
    (_REGISTRATION, "MutatingAdmissionPolicy"): MutatingPolicyStrategy(),
    (_REGISTRATION, "MutatingAdmissionPolicyBinding"): MutatingBindingStrategy(),
    **apiservices.STRATEGIES,
    **controllers.STRATEGIES,
    **devices.STRATEGIES,
    **endpoints.STRATEGIES,
    **events.STRATEGIES,
    **flowcontrol.STRATEGIES,
    **ingresses.STRATEGIES,
    **networkpolicies.STRATEGIES,
    **quotas.STRATEGIES,
    **servicenetworks.STRATEGIES,
    **storagekinds.STRATEGIES,
    **workloads.STRATEGIES,
}
PLACES = (*STRATEGIES, *rbacrules.PLACES, csr.PLACE)
# Kinds that the server answers and never stores, and whether they have a namespace.
REVIEWS = {
    ("authentication.k8s.io", "TokenReview"): False,
    ("authentication.k8s.io", "SelfSubjectReview"): False,
    ("authorization.k8s.io", "SubjectAccessReview"): False,
    ("authorization.k8s.io", "LocalSubjectAccessReview"): True,
    ("authorization.k8s.io", "SelfSubjectAccessReview"): False,
    ("authorization.k8s.io", "SelfSubjectRulesReview"): False,
}
CELLS: dict[tuple[str, str], Cells] = {
    **clustertables.CELLS,
    **components.CELLS,
    **csr.CELLS,
    **devices.CELLS,
    **ingresses.CELLS,
    **networkpolicies.CELLS,
    **podtables.CELLS,
    **servicenetworks.CELLS,
    **tables.CELLS,
}
_POD_FIELDS = ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName", "hostNetwork")
# What the table does not say of the resource of a kind.
_MORE: dict[tuple[str, str], Data] = {
    ("", "Pod"): {
        "selectable": (*(f"spec.{name}" for name in _POD_FIELDS), "status.phase", "status.podIP", "status.nominatedNodeName"),
        "flags": ("spec.hostNetwork",),
    },
    ("apps", "ReplicaSet"): {"selectable": ("status.replicas",)},
    ("", "ReplicationController"): {"selectable": ("status.replicas",)},
    ("batch", "Job"): {"selectable": ("status.successful",), "stored_fields": {"status.successful": "status.succeeded"}},
    ("", "Node"): {"selectable": ("spec.unschedulable",), "flags": ("spec.unschedulable",)},
    ("policy", "PodDisruptionBudget"): {"unconditional_update": False},
    csr.PLACE: {"selectable": ("spec.signerName",)},
    ("", "ComponentStatus"): {"verbs": components.VERBS, "deprecation": components.DEPRECATION},
    ("", "Endpoints"): {
        "create_on_update": True,
        "deprecation": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    },
    _LEASE: {"create_on_update": True, "unconditional_update": False},
    (devices.GROUP, "ResourceSlice"): {"selectable": ("spec.nodeName", "spec.driver")},
    (events.GROUP, "Event"): {
        **events.SERVED,
        "collection": events.COLLECTION,
        "stored_version": "v1",
        "to_stored": events.to_stored,
        "from_stored": events.from_stored,
    },
    **{place: {"create_on_update": True} for place in rbacrules.PLACES},
}
Convert = Callable[[Data], Data]
# of versions that are not stored: to the stored form, and from it
_CONVERSIONS: dict[tuple[str, str, str], tuple[Convert, Convert]] = {
    ("autoscaling", "HorizontalPodAutoscaler", "v1"): (autoscalers.to_stored, autoscalers.from_stored),
}


def resources(judge: Rbac, *, stored: bool) -> Iterator[ServedResource]:
    """The resources of the table; workloads are `stored`, or refused with the reason. `judge` decides who may give rights away."""
    strategies = {**STRATEGIES, **rbacrules.strategies(judge), csr.PLACE: csr.RequestStrategy(judge)}
    for place in PLACES:
        row = table.kinds()[place]
        refused = not stored and place in REFUSED
        strategy = pods.RefusedPodStrategy(row.group, row.plural, pods.WHY_REFUSED) if refused else strategies[place]
        for version, message in row.messages.items():
            yield _resource(row, version, TablePipeline(message, (row.group, version, row.kind), judging=not refused), strategy)
    for (group, kind), namespaced in REVIEWS.items():
        yield _review(group, kind, namespaced=namespaced)


def _resource(row: KindRow, version: str, pipeline: TablePipeline, strategy: Strategy) -> ServedResource:
    place, storage = (row.group, row.kind), next(iter(row.messages))
    to_stored, from_stored = _CONVERSIONS.get((*place, version), (None, None))
    names = [name for name, _, _ in row.subresources]
    said: Data = {
        "collection": collection_of(row.group, row.plural),
        "stored_version": f"{row.group}/{storage}" if row.group else storage,
        "unconditional_update": True,
        "to_stored": to_stored,
        "from_stored": from_stored,
    }
    return ServedResource(
        group=row.group,
        version=version,
        plural=row.plural,
        kind=row.kind,
        pipeline=pipeline,
        strategy=strategy,
        singular=row.kind.lower(),
        namespaced=not row.cluster,
        short_names=row.short_names,
        categories=row.categories,
        status="status" in names,
        scale=_SCALE if "scale" in names else None,
        subresources=_subresources(row),
        columns=rows.columns(row),
        cells=CELLS.get(place),
        strategic=True,
        declared=True,
        **(said | _MORE.get(place, {})),
    )


def _review(group: str, kind: str, *, namespaced: bool) -> ServedResource:
    plural = f"{kind.lower()}s"
    return ServedResource(
        group=group,
        version="v1",
        plural=plural,
        kind=kind,
        collection=collection_of(group, plural),
        pipeline=TablePipeline(table.load()["bodies"][f"{group}/v1.{kind}"], (group, "v1", kind)),
        strategy=PLAIN,
        stored_version=f"{group}/v1",
        singular=kind.lower(),
        namespaced=namespaced,
        verbs=("create",),
        strategic=True,
        unconditional_update=True,
        declared=True,
    )


def _subresources(row: KindRow) -> tuple[Subresource, ...]:
    if row.kind == "Pod":
        return pods.subresources(row.subresources)
    scale = ("Scale", "autoscaling/v1")
    return tuple(Subresource(name, tuple(verbs.split()), *(scale if name == "scale" else ())) for name, _, verbs in row.subresources)
