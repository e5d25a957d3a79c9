"""The roles that an installation of KubeVirt brings, under its names: what they let a user do with machines that run.

`kubevirt.io:admin`, `:edit` and `:view` become part of the roles of the same name without the prefix. Who may look at machines
may not look at their screens: the console and the display need rights of their own.
"""

from collections.abc import Iterable, Iterator

from paddock.apiserver.objects.encoding import Data

_RBAC = "rbac.authorization.k8s.io"
SUBRESOURCES = "subresources.kubevirt.io"
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "patch", "update")
# all of them at once
_SWEEP = ("deletecollection",)
_KINDS = {
    "kubevirt.io": ("virtualmachines", "virtualmachineinstances", "virtualmachineinstancepresets", "virtualmachineinstancereplicasets"),
    "snapshot.kubevirt.io": ("virtualmachinesnapshots", "virtualmachinesnapshotcontents", "virtualmachinerestores"),
    "export.kubevirt.io": ("virtualmachineexports",),
    "clone.kubevirt.io": ("virtualmachineclones",),
    "instancetype.kubevirt.io": ("virtualmachineinstancetypes", "virtualmachinepreferences"),
    "pool.kubevirt.io": ("virtualmachinepools",),
}
_CLUSTER_KINDS = ("virtualmachineclusterinstancetypes", "virtualmachineclusterpreferences")
_MIGRATIONS = ("virtualmachineinstancemigrations",)
_LOOK_INTO = ("guestosinfo", "filesystemlist", "userlist", "sev/fetchcertchain", "sev/querylaunchmeasurement", "objectgraph")
_CONNECT = ("console", "vnc", "vnc/screenshot", "portforward", "usbredir", "vsock")
_CONTROL = (
    *("pause", "unpause", "addvolume", "removevolume", "freeze", "unfreeze", "softreboot", "reset"),
    *("sev/setupsession", "sev/injectlaunchsecret", "evacuate/cancel", "backup", "redefine-checkpoint"),
)
_RUN = ("start", "stop", "restart", "addvolume", "removevolume", "memorydump", "removememorydump", "evacuate/cancel")


def _rule(verbs: Iterable[str], group: str, resources: Iterable[str]) -> Data:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _below(plural: str, names: Iterable[str]) -> list[str]:
    return [f"{plural}/{name}" for name in names]


def _kinds(verbs: Iterable[str]) -> list[Data]:
    return [_rule(verbs, group, resources) for group, resources in _KINDS.items()]


_INSTANCES, _MACHINES = "virtualmachineinstances", "virtualmachines"
_VIEW = [
    _rule(("get",), SUBRESOURCES, [*_below(_INSTANCES, _LOOK_INTO), *_below(_MACHINES, ("expand-spec", "objectgraph"))]),
    _rule(("update",), SUBRESOURCES, ("expand-vm-spec",)),
    *_kinds(_READ),
    _rule(_READ, "kubevirt.io", _MIGRATIONS),
]
_EDIT = [
    *_VIEW,
    _rule(("get",), SUBRESOURCES, [*_below(_INSTANCES, _CONNECT), *_below(_MACHINES, ("portforward",))]),
    _rule(("update",), SUBRESOURCES, [*_below(_INSTANCES, _CONTROL), *_below(_MACHINES, _RUN)]),
    *_kinds(_WRITE),
]
_ADMIN = [*_EDIT, *_kinds(_SWEEP)]
# A renewal is what an upgrade of the host asks for: whoever may migrate machines may do it.
_MIGRATE = [
    _rule(("update",), SUBRESOURCES, ("virtualmachines/migrate", "virtualmachineinstances/renew")),
    _rule((*_READ, *_WRITE, *_SWEEP), "kubevirt.io", _MIGRATIONS),
]
_DEFAULT = [_rule(("get", "list"), "kubevirt.io", ("kubevirts",)), _rule(("get", "list"), SUBRESOURCES, ("version", "guestfs", "healthz"))]

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
    """What the roles here add to one of Kubernetes' own."""
    return [rule for rules, becomes in ROLES.values() if becomes == level for rule in rules]
