"""The roles that an installation of KubeVirt brings, under its names: what they let a user do with machines that run.

`kubevirt.io:admin`, `:edit` and `:view` become part of the roles of the same name without the prefix. Who may look at machines
may not look at their screens: the console and the display need rights of their own. The rules are KubeVirt's, also those for kinds
that are not served here, and a few of Paddock's own for subresources of its own.
"""

from collections.abc import Iterable, Iterator

from paddock.base.jsondata import Data
from paddock.server.resources import kubevirtsubresources

_RBAC = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")
# all of them at once
_SWEEP = ("deletecollection",)
_CLUSTER_KINDS = ("virtualmachineclusterinstancetypes", "virtualmachineclusterpreferences")
_KINDS = {
    "kubevirt.io": ("virtualmachines", "virtualmachineinstances", "virtualmachineinstancepresets", "virtualmachineinstancereplicasets"),
    "snapshot.kubevirt.io": ("virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"),
    "backup.kubevirt.io": ("virtualmachinebackups", "virtualmachinebackuptrackers"),
    "export.kubevirt.io": ("virtualmachineexports",),
    "clone.kubevirt.io": ("virtualmachineclones",),
    "instancetype.kubevirt.io": ("virtualmachineinstancetypes", "virtualmachinepreferences", *_CLUSTER_KINDS),
    "pool.kubevirt.io": ("virtualmachinepools",),
}
_MIGRATIONS = ("virtualmachineinstancemigrations",)


def _rule(verbs: Iterable[str], group: str, resources: Iterable[str]) -> Data:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _subresources(role: str) -> list[Data]:
    return [_rule((verb,), kubevirtsubresources.GROUP, paths) for verb, paths in kubevirtsubresources.paths_of(role)]


def _kinds(verbs: Iterable[str]) -> list[Data]:
    return [_rule(verbs, group, resources) for group, resources in _KINDS.items()]


def _plugins(verbs: Iterable[str]) -> Data:
    return _rule(verbs, "plugin.kubevirt.io", ("plugins",))


_INSTALLATION = _rule(("get", "list"), "kubevirt.io", ("kubevirts",))
_MOVES = [_rule(_READ, "kubevirt.io", _MIGRATIONS), _rule(_READ, "migrations.kubevirt.io", ("migrationpolicies",))]
_ALL = (*_READ, *_WRITE, *_SWEEP)
_VIEW = [*_subresources("view"), *_kinds(_READ), *_MOVES, _INSTALLATION, _plugins(_READ)]
_EDIT = [*_subresources("view"), *_subresources("edit"), *_kinds((*_READ, *_WRITE)), *_MOVES, _INSTALLATION]
_ADMIN = [
    *(rule for role in ("view", "edit", "admin") for rule in _subresources(role)),
    *_kinds(_ALL),
    *_MOVES,
    _plugins(_ALL),
]
_MIGRATE = [*_subresources("migrate"), _rule(_ALL, "kubevirt.io", _MIGRATIONS)]
_DEFAULT = [
    _INSTALLATION,
    *({**rule, "verbs": ["get", "list"]} for rule in _subresources("default")),
]

# name -> its rules, and the role that it becomes a part of
ROLES: dict[str, tuple[list[Data], str]] = {
    "kubevirt.io:admin": (_ADMIN, "admin"),
    "kubevirt.io:edit": (_EDIT, "edit"),
    "kubevirt.io:view": (_VIEW, "view"),
    "kubevirt.io:migrate": (_MIGRATE, ""),
    "kubevirt.io:default": (_DEFAULT, ""),
    "instancetype.kubevirt.io:view": ([_rule(_READ, "instancetype.kubevirt.io", _CLUSTER_KINDS)], ""),
}
BINDINGS = {"kubevirt.io:default": ("system:authenticated",), "instancetype.kubevirt.io:view": ("system:authenticated",)}


def roles(meta: Data) -> Iterator[Data]:
    """The roles; `meta` is what every role of the start has in its metadata."""
    for name, (rules, level) in ROLES.items():
        labels = {**meta["labels"], "kubevirt.io": "", **({f"{_RBAC}/aggregate-to-{level}": "true"} if level else {})}
        metadata = {"name": name, "labels": labels, "annotations": dict(meta["annotations"])}
        yield {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def rules_of(level: str) -> list[Data]:
    """Return the rules that the roles here add to one of Kubernetes' own."""
    return [rule for rules, becomes in ROLES.values() if becomes == level for rule in rules]
