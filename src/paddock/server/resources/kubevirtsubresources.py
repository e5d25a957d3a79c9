"""The paths of the group `subresources.kubevirt.io`, each with its verb and the role of KubeVirt that grants it."""

from collections.abc import Iterator
from typing import NamedTuple

GROUP = "subresources.kubevirt.io"
MACHINES, INSTANCES = "virtualmachines", "virtualmachineinstances"


class SubresourceGrant(NamedTuple):
    """A right to some paths below a kind of objects; without a kind, to paths of their own. No role has those without a role."""

    role: str
    verb: str
    plural: str
    names: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, as rules of roles write them."""
        return tuple(f"{self.plural}/{name}" if self.plural else name for name in self.names)


_READ = ("guestosinfo", "filesystemlist", "userlist", "sev/fetchcertchain", "sev/querylaunchmeasurement", "objectgraph")
_CONNECT = ("console", "vnc", "portforward", "usbredir")
_CONTROL = (
    *("pause", "unpause", "addvolume", "removevolume", "freeze", "unfreeze", "softreboot", "reset"),
    *("sev/setupsession", "sev/injectlaunchsecret", "evacuate/cancel"),
)
_RUN = ("start", "stop", "restart", "addvolume", "removevolume", "memorydump", "removememorydump", "evacuate/cancel")
GRANTS = (
    SubresourceGrant("view", "get", INSTANCES, _READ),
    SubresourceGrant("view", "get", MACHINES, ("expand-spec", "objectgraph")),
    SubresourceGrant("view", "update", "", ("expand-vm-spec",)),
    # Whoever may see what a machine uses now (metrics.k8s.io) may see what it used; Paddock's own.
    SubresourceGrant("view", "get", INSTANCES, ("usagehistory",)),
    SubresourceGrant("view", "get", MACHINES, ("usagehistory",)),
    SubresourceGrant("edit", "get", INSTANCES, _CONNECT),
    SubresourceGrant("edit", "get", MACHINES, ("portforward",)),
    SubresourceGrant("edit", "update", INSTANCES, _CONTROL),
    SubresourceGrant("edit", "update", MACHINES, _RUN),
    # Whoever may open the console of a guest may read its log, run a command in it, and copy its files; Paddock's own.
    SubresourceGrant("edit", "get", INSTANCES, ("consolelog",)),
    SubresourceGrant("edit", "get", MACHINES, ("consolelog",)),
    SubresourceGrant("edit", "update", INSTANCES, ("guestexec", "guestfile")),
    # Suspending to disk is Paddock's own, too.
    SubresourceGrant("edit", "update", MACHINES, ("suspend", "resume")),
    # A renewal follows an upgrade of the host's QEMU, as a migration would.
    SubresourceGrant("migrate", "update", MACHINES, ("migrate",)),
    SubresourceGrant("migrate", "update", INSTANCES, ("renew",)),
    SubresourceGrant("admin", "get", INSTANCES, ("vnc/screenshot",)),
    # Paths without a name are lists to the authorizer.
    SubresourceGrant("default", "list", "", ("version", "guestfs")),
    SubresourceGrant("", "list", "", ("healthz",)),
    SubresourceGrant("", "get", INSTANCES, ("vsock",)),
    SubresourceGrant("", "update", INSTANCES, ("backup", "redefine-checkpoint")),
)


def right_to(path: str) -> str:
    """Return the subresource that rights to a path name: the whole path, but for the port behind `portforward`."""
    first = path.partition("/")[0]
    return first if first == "portforward" else path


def paths_of(role: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the verbs of a role, each with its paths."""
    for verb in dict.fromkeys(grant.verb for grant in GRANTS if grant.role == role):
        yield verb, [path for grant in GRANTS if (grant.role, grant.verb) == (role, verb) for path in grant.paths]
