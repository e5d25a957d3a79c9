"""The flow schemas and priority levels that are there from the start: Kubernetes' own, with its numbers."""

from collections.abc import Iterable

from paddock.base.jsondata import Data

_SYSTEM_ACCOUNTS: Data = {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}}
# The server itself needs them: they cannot be changed, and are made again when they are missing.
MANDATORY_SCHEMAS = ("exempt", "catch-all")
MANDATORY_LEVELS = ("exempt", "catch-all")


def _groups(*names: str) -> list[Data]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _users(*names: str) -> list[Data]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


def _resources(verbs: Iterable[str], group: str, resources: Iterable[str], *, cluster: bool) -> Data:
    found: Data = {"verbs": list(verbs), "apiGroups": [group], "resources": list(resources)}
    if cluster:
        found["clusterScope"] = True
    return {**found, "namespaces": ["*"]}


_EVERYTHING: Data = {
    "resourceRules": [_resources("*", "*", "*", cluster=True)],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
_ANYBODY = _groups("system:unauthenticated", "system:authenticated")
_LEASES = "coordination.k8s.io"


def _schema(level: str, precedence: int, method: str, subjects: list[Data], rules: Data) -> Data:
    found: Data = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if method:
        found["distinguisherMethod"] = {"type": method}
    return {**found, "rules": [{"subjects": subjects, **rules}]}


def _limited(shares: int, lendable: int, queues: int, hand: int) -> Data:
    queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": 50}
    response = {"type": "Queue", "queuing": queuing} if queues else {"type": "Reject"}
    return {"type": "Limited", "limited": {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}}


_PROBES: Data = {"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]}
_ELECTION: Data = {"resourceRules": [_resources(("get", "create", "update"), _LEASES, ("leases",), cluster=False)]}
_NODES: Data = {
    "resourceRules": [
        _resources("*", "", ("nodes", "nodes/status"), cluster=True),
        _resources("*", _LEASES, ("leases",), cluster=False),
    ]
}
_MANAGER, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
SCHEMAS: dict[str, Data] = {
    "exempt": _schema("exempt", 1, "", _groups("system:masters"), _EVERYTHING),
    "catch-all": _schema("catch-all", 10000, "ByUser", _ANYBODY, _EVERYTHING),
    "probes": _schema("exempt", 2, "", _ANYBODY, _PROBES),
    "system-leader-election": _schema("leader-election", 100, "ByUser", [*_users(_MANAGER, _SCHEDULER), _SYSTEM_ACCOUNTS], _ELECTION),
    "system-node-high": _schema("node-high", 400, "ByUser", _groups("system:nodes"), _NODES),
    "system-nodes": _schema("system", 500, "ByUser", _groups("system:nodes"), _EVERYTHING),
    "kube-controller-manager": _schema("workload-high", 800, "ByNamespace", _users(_MANAGER), _EVERYTHING),
    "kube-scheduler": _schema("workload-high", 800, "ByNamespace", _users(_SCHEDULER), _EVERYTHING),
    "kube-system-service-accounts": _schema("workload-high", 900, "ByNamespace", [_SYSTEM_ACCOUNTS], _EVERYTHING),
    "service-accounts": _schema("workload-low", 9000, "ByUser", _groups("system:serviceaccounts"), _EVERYTHING),
    "global-default": _schema("global-default", 9900, "ByUser", _ANYBODY, _EVERYTHING),
}
LEVELS: dict[str, Data] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": _limited(5, 0, 0, 0),
    "system": _limited(30, 33, 64, 6),
    "node-high": _limited(40, 25, 64, 6),
    "leader-election": _limited(10, 0, 16, 4),
    "workload-high": _limited(40, 50, 128, 6),
    "workload-low": _limited(100, 90, 128, 6),
    "global-default": _limited(20, 50, 128, 6),
}
