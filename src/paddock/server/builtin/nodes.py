"""Nodes: the host of this server, as clients look at it."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.kindtable import pipeline
from paddock.server.resources.strategy import Strategy, WriteContext

_RULE = "core/node"


class NodeStrategy(Strategy):
    """A node may be closed and tainted by anybody who may write it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """There is always a spec, and nothing has been observed."""
        new.setdefault("spec", {})
        new["status"] = pipeline.blank("core/v1.Node", "status")
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Open is the same as not closed."""
        spec: Data = new.setdefault("spec", {})
        if not spec.get("unschedulable"):
            spec.pop("unschedulable", None)
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A taint stands once for each effect."""
        seen = set()
        for index, taint in enumerate((new.get("spec") or {}).get("taints") or ()):
            place = (taint.get("key"), taint.get("effect"))
            if place in seen:
                yield finding.duplicate(("spec", "taints", index), taint, _RULE)
            seen.add(place)
