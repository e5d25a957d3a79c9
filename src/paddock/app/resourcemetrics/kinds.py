"""The two kinds of the group, as metrics-server publishes them. They can be read, and are never stored."""

from typing import Any

from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import Column
from paddock.server.housekeeping.bootstrap import METRICS
from paddock.server.resources.declared import collection_of
from paddock.server.resources.pipeline import Decoded
from paddock.server.resources.resource import ServedResource
from paddock.server.resources.strategy import PLAIN

GROUP, VERSION = METRICS, "v1beta1"
VERBS = ("get", "list")
_TEXT: dict[str, Any] = {"type": "string"}
_USAGE = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    "description": "The use by resource: cpu in cores, memory in bytes.",
}
_CONTAINER = {"type": "object", "properties": {"name": _TEXT, "usage": _USAGE}, "required": ["name", "usage"]}
_COMMON = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object"},
    "timestamp": {"type": "string", "format": "date-time", "description": "The end of the window."},
    "window": {**_TEXT, "description": "The time over which the use of processors was measured."},
}


class _ReadOnly:
    """The pipeline of what nobody writes: a schema for clients, and nothing to decode."""

    def __init__(self, text: str, own: dict[str, Any]) -> None:
        self.schema: dict[str, Any] = {"type": "object", "description": text, "properties": {**_COMMON, **own}}

    def decode(self, raw: dict[str, Any]) -> Decoded:
        return Decoded(raw)

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None, *, of_status: bool = False) -> tuple[Finding, ...]:
        return ()


def resources() -> tuple[ServedResource, ...]:
    """Return the resources of the group."""
    containers = {"type": "array", "items": _CONTAINER}
    return (
        _resource("nodes", "NodeMetrics", _ReadOnly("The use of a node.", {"usage": _USAGE}), namespaced=False),
        _resource("pods", "PodMetrics", _ReadOnly("The use of a running machine.", {"containers": containers}), namespaced=True),
    )


def _cells(data: dict[str, Any], now: float) -> list[Any]:
    used = data["usage"] if "usage" in data else data["containers"][0]["usage"]
    return [data["metadata"]["name"], used["cpu"], used["memory"], data["window"]]


def _resource(plural: str, kind: str, pipeline: _ReadOnly, *, namespaced: bool) -> ServedResource:
    return ServedResource(
        group=GROUP,
        version=VERSION,
        plural=plural,
        kind=kind,
        collection=collection_of(GROUP, plural),
        pipeline=pipeline,
        strategy=PLAIN,
        stored_version=f"{GROUP}/{VERSION}",
        namespaced=namespaced,
        verbs=VERBS,
        columns=(
            Column("cpu", ".usage.cpu", "string", "The use of processors, in cores."),
            Column("memory", ".usage.memory", "string", "The use of memory."),
            Column("Window", ".window", "string", "The time over which the use was measured."),
        ),
        # Every answer is new, so no row of an answer may be kept.
        cells=_cells,
    )
