"""Objects that exist from the start: namespaces, roles, bindings. Every start creates missing objects; roles with the autoupdate
annotation get back the rules that they lost, and keep added ones."""

import asyncio
from collections.abc import Iterable, Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.server.builtin.stored import SYSTEM_PRIORITIES
from paddock.server.context import ServerParts
from paddock.server.housekeeping import controllerroles, flows, kubevirtroles
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Options, Proposal
from paddock.server.store.contract import StoreKey

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_WHO = Options(user="system:apiserver", manager="paddock", unasked=True)
_SCHEDULING = "scheduling.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_META = {"labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}, "annotations": {_AUTOUPDATE: "true"}}
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_CORE = ("configmaps", "endpoints", "events", "persistentvolumeclaims", "serviceaccounts", "services")
# KubeVirt's kinds have roles of their own, which become part of these.
_MACHINES = {
    "cdi.kubevirt.io": ("datavolumes", "datasources", "dataimportcrons"),
    **{dialect.group: ("*",) for dialect in catalog.fronts()},
    "k8s.cni.cncf.io": ("*",),
}


# The group of metrics-server; whoever may look at machines may see their use.
METRICS = "metrics.k8s.io"
_METRICS_READER = "system:aggregated-metrics-reader"


def _rule(verbs: Iterable[str], groups: Iterable[str], resources: Iterable[str]) -> Data:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _paths(verbs: Iterable[str], urls: Iterable[str]) -> Data:
    return {"nonResourceURLs": list(urls), "verbs": list(verbs)}


def _machine_rules(verbs: Iterable[str]) -> list[Data]:
    return [_rule(verbs, (group,), resources) for group, resources in _MACHINES.items()]


_METRICS_RULE = _rule(_READ, (METRICS,), ("nodes", "pods"))
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/healthz", "/livez", "/readyz", "/version", "/version/")
_BOUNDS = ("limitranges", "resourcequotas", "resourcequotas/status")
_STATUSES = ("persistentvolumeclaims/status", "services/status", "replicationcontrollers/status")
_WORKLOADS = ("replicationcontrollers", "replicationcontrollers/scale")
_VIEW = [
    _rule(_READ, ("",), (*_CORE, *_WORKLOADS, "namespaces", *_STATUSES, *_BOUNDS)),
    _rule(_READ, ("policy",), ("poddisruptionbudgets", "poddisruptionbudgets/status")),
    *_machine_rules(_READ),
]
_EDIT = [
    _rule(_READ, ("",), ("secrets",)),
    _rule(_WRITE, ("",), (*_CORE, *_WORKLOADS, "secrets")),
    _rule(_WRITE, ("policy",), ("poddisruptionbudgets",)),
    _rule(("impersonate",), ("",), ("serviceaccounts",)),
    _rule(("create",), ("",), ("serviceaccounts/token",)),
    *_machine_rules(_WRITE),
]
_ADMIN = [
    _rule((*_READ, *_WRITE), (_RBAC,), ("roles", "rolebindings")),
    _rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",)),
]
_REVIEWS = [
    _rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
    _rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
]
ROLES: dict[str, list[Data]] = {
    "cluster-admin": [_rule(("*",), ("*",), ("*",)), _paths(("*",), ("*",))],
    "system:aggregate-to-view": _VIEW,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-admin": _ADMIN,
    "system:discovery": [_paths(("get",), _DISCOVERY)],
    "system:public-info-viewer": [_paths(("get",), _PUBLIC)],
    "system:basic-user": _REVIEWS,
    "system:auth-delegator": [
        _rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        _rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
    ],
    "system:certificates.k8s.io:kube-apiserver-client-approver": [
        {**_rule(("approve",), ("certificates.k8s.io",), ("signers",)), "resourceNames": ["kubernetes.io/kube-apiserver-client"]}
    ],
    "system:service-account-issuer-discovery": [_paths(("get",), ("/.well-known/openid-configuration", "/openid/v1/jwks"))],
}
# Made by the union of the roles with these labels.
AGGREGATED = {"view": ("view",), "edit": ("edit", "view"), "admin": ("admin", "edit", "view")}
BINDINGS = {
    "cluster-admin": ("system:masters",),
    "system:discovery": ("system:authenticated",),
    "system:basic-user": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
    "system:service-account-issuer-discovery": ("system:serviceaccounts",),
    **kubevirtroles.BINDINGS,
}


def objects() -> Iterator[tuple[str, Data]]:
    """Return every object with the plural of its kind."""
    for name in NAMESPACES:
        yield "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name, (value, text) in SYSTEM_PRIORITIES.items():
        priority = {"apiVersion": f"{_SCHEDULING}/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        yield "priorityclasses", {**priority, "description": text}
    for name, rules in ROLES.items():
        meta: Data = {"name": name, "labels": dict(_META["labels"]), "annotations": dict(_META["annotations"])}
        level = name.removeprefix("system:aggregate-to-")
        if level != name:
            meta["labels"][f"{_RBAC}/aggregate-to-{level}"] = "true"
        yield "clusterroles", {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    for role in (*kubevirtroles.roles(_META), _metrics_reader()):
        yield "clusterroles", role
    for name, levels in AGGREGATED.items():
        selectors = [{"matchLabels": {f"{_RBAC}/aggregate-to-{level}": "true"}} for level in levels]
        own = (rule for level in reversed(levels) for rule in (*ROLES[f"system:aggregate-to-{level}"], *kubevirtroles.rules_of(level)))
        rules = [*own, _METRICS_RULE]
        role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name, **_META}, "rules": rules}
        yield "clusterroles", {**role, "aggregationRule": {"clusterRoleSelectors": selectors}}
    for name, groups in BINDINGS.items():
        yield (
            "clusterrolebindings",
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name, **_META},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "Group", "apiGroup": _RBAC, "name": group} for group in groups],
            },
        )
    yield from controllerroles.objects(_META)


def _metrics_reader() -> Data:
    """Return the role that metrics-server brings: a part of the roles for users."""
    labels = {**_META["labels"], **{f"{_RBAC}/aggregate-to-{level}": "true" for level in AGGREGATED}}
    meta = {"name": _METRICS_READER, "labels": labels, "annotations": dict(_META["annotations"])}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": [_METRICS_RULE]}


async def ensure(parts: ServerParts) -> None:
    """Make what is missing, and give roles back what they lack."""
    await flows.ensure(parts)
    # Together, so that they share a commit.
    await asyncio.gather(*(_ensure(parts, plural, data) for plural, data in objects()))


async def _ensure(parts: ServerParts, plural: str, data: Data) -> None:
    resource = parts.registry.find(data["apiVersion"].rpartition("/")[0], "v1", plural)
    if resource is None:
        return
    name = data["metadata"]["name"]
    record = parts.store.decided(StoreKey(resource.collection, "", name))
    if record is None:
        await parts.writer.create(resource, "", data, _WHO)
    elif _lost(data, decode(record.value)):
        await parts.writer.replace(resource, "", name, lambda old: Proposal({**old, **_completed(data, old)}), _WHO)


def _lost(wanted: Data, old: Data) -> bool:
    """Return whether a stored role or binding lacks anything that ours has."""
    return any(old.get(key) != each for key, each in _completed(wanted, old).items())


def _completed(wanted: Data, old: Data) -> Data:
    """The rules and subjects of a stored role or binding with everything that ours has, unless somebody has switched that off."""
    if (old["metadata"].get("annotations") or {}).get(_AUTOUPDATE) != "true" or "aggregationRule" in old:
        return {}
    kept = {key: list(old.get(key) or []) for key in ("rules", "subjects") if key in wanted}
    return {key: have + [each for each in wanted[key] if each not in have] for key, have in kept.items()}
