"""Objects that kubectl applied by itself, from the day on when it lets the server apply.

Client-side apply leaves its configuration in an annotation. Where the object still is as that says, kubectl may give other values
without a conflict, whoever the books name as owner: it was kubectl under another name (docs/spec/kube-api.md item 86).
"""

import json
from typing import Any

from paddock.kubernetes.meta.apply import types, values
from paddock.kubernetes.meta.apply.differences import difference
from paddock.kubernetes.meta.apply.ownership import Manager
from paddock.kubernetes.meta.apply.places import Places, minus, union

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
# The manager that upstream looks for; whoever calls themselves otherwise wants nothing of this.
_KUBECTL = "kubectl"


def yielding(live: dict[str, Any], root: types.MergeType, manager: Manager) -> Places:
    """The places of an object that yield to this applier."""
    if manager.name != _KUBECTL or manager.subresource:
        return {}
    said = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not said:
        return {}
    try:
        config = json.loads(said)
    except ValueError:
        return {}
    if not isinstance(config, dict) or config.get("apiVersion") != live.get("apiVersion"):
        return {}
    try:
        applied = values.places_of(root, config)
        since = difference(root, config, live)
    except (values.Unmergeable, AttributeError, TypeError):
        # Anybody can write an annotation; what does not fit the kind says nothing about it.
        return {}
    return minus(applied, union(union(since.added, since.modified), since.removed))
