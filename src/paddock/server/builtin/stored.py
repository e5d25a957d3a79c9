"""Kinds that clients expect to be there, and that a server of virtual machines only keeps.

Volumes, templates and priorities are stored as they come.
"""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import CustomStrategy, WriteContext

_HIGHEST_PRIORITY = 1_000_000_000
# The priorities that the system itself has, and why nobody else may begin a name like that.
SYSTEM_PRIORITIES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their current node."),
}
_RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: "


class PriorityStrategy(CustomStrategy):
    """A priority pushes others away unless it says otherwise."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The highest priorities are the system's, and so are the names."""
        name, value = new["metadata"].get("name", ""), new.get("value")
        if name.startswith("system-"):
            if name not in SYSTEM_PRIORITIES:
                yield finding.forbidden(("metadata", "name"), f"{_RESERVED}{name} is not a known system priority class", "core/priority")
            elif value != SYSTEM_PRIORITIES[name][0]:
                why = f"{_RESERVED}value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name][0]}"
                yield finding.forbidden(("metadata", "name"), why, "core/priority")
        elif isinstance(value, int) and value > _HIGHEST_PRIORITY:
            yield finding.forbidden(("value",), f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}", "core/priority")

        for field in ("value", "preemptionPolicy") if old is not None else ():
            if new.get(field) != (old or {}).get(field):
                yield finding.forbidden((field,), "may not be changed in an update.", "core/priority-change")

    def before_delete(self, old: Data, context: WriteContext) -> None:
        """The system's own stay."""
        name = old["metadata"]["name"]
        if name in SYSTEM_PRIORITIES:
            about = failure.FailureTarget(name=name, group="scheduling.k8s.io", kind="priorityclasses")
            raise failure.forbidden(about, "this is a system priority class and cannot be deleted")
