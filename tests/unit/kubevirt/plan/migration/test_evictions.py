"""The answer to the eviction of a launcher Pod."""

from typing import Any

import pytest

from paddock.kubevirt.plan.migration.evictions import EvictionDecision, decide

TRIGGERED, STUCK = 'Eviction triggered evacuation of VMI "ns/web"', 'VMI "ns/web" is configured with an eviction strategy but'


def _instance(strategy: str, movable: str, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "LiveMigratable", "status": movable}]
    spec = {"evictionStrategy": strategy} if strategy else {}
    return {"metadata": {"namespace": "ns", "name": "web"}, "spec": spec, "status": {"conditions": conditions, **status}}


@pytest.mark.spec("kubevirt", 226)
@pytest.mark.parametrize(
    ("strategy", "movable", "refusal", "evacuates"),
    [
        ("", "True", "", False),
        ("None", "True", "", False),
        ("LiveMigrate", "True", TRIGGERED, True),
        ("LiveMigrate", "False", STUCK, False),
        ("LiveMigrateIfPossible", "True", TRIGGERED, True),
        ("LiveMigrateIfPossible", "False", "", False),
        ("External", "False", TRIGGERED, True),
    ],
)
def test_each_strategy(strategy: str, movable: str, refusal: str, evacuates: bool) -> None:
    found = decide(_instance(strategy, movable))
    assert found.refusal.startswith(refusal) and bool(refusal) == bool(found.refusal) and found.evacuates == evacuates


def test_a_repeated_eviction_changes_nothing() -> None:
    found = decide(_instance("LiveMigrate", "True", evacuationNodeName="one"))
    assert found == EvictionDecision(TRIGGERED)
