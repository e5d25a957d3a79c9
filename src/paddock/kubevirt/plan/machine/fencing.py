"""The fence of a machine: an annotation that forbids its start while another server may run it (docs/design/0023-move.md)."""

from collections.abc import Mapping

from paddock.base import ownnames

FENCE = ownnames.FENCE.name


def reason(annotations: Mapping[str, str] | None) -> str:
    """Return the reason why a machine must not start; empty if it may."""
    found = (annotations or {}).get(FENCE)
    return (found or "it is fenced") if found is not None else ""
