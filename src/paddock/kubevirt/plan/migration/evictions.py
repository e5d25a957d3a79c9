"""The answer to the eviction of a launcher Pod from a node that is drained. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class EvictionDecision(NamedTuple):
    """What becomes of the instance. `refusal` answers the request; without one the instance ends, and its Pod with it."""

    refusal: str = ""
    # note the node, so that the instance moves away from it
    evacuates: bool = False


def decide(instance: Mapping[str, Any]) -> EvictionDecision:
    """Return what the eviction strategy of an instance says."""
    meta, status = instance["metadata"], instance.get("status") or {}
    strategy = (instance.get("spec") or {}).get("evictionStrategy") or "None"
    name = f'"{meta.get("namespace", "")}/{meta["name"]}"'
    moves = any((each["type"], each["status"]) == ("LiveMigratable", "True") for each in status.get("conditions") or ())
    if strategy == "External" or (strategy in ("LiveMigrate", "LiveMigrateIfPossible") and moves):
        return EvictionDecision(f"Eviction triggered evacuation of VMI {name}", evacuates=status.get("evacuationNodeName") is None)
    if strategy == "LiveMigrate":
        return EvictionDecision(f"VMI {name} is configured with an eviction strategy but is not live-migratable")
    return EvictionDecision()
