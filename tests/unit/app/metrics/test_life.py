"""Changes of phases, as they are counted."""

import json
from typing import Any

import pytest

from paddock.app.metrics.life import Phases
from paddock.base.metrics import MetricsRegistry
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from tests.kit.prometheus import read

NAME = "kubevirt_vmi_phase_transition_time"


def seen(phase: str, deleted: str = "") -> CachedObject:
    moments = [("Pending", 10), ("Scheduling", 11), ("Running", 15), ("Succeeded", 40)]
    metadata: dict[str, Any] = {"name": "web", "creationTimestamp": "2026-01-01T00:00:09Z"}
    if deleted:
        metadata["deletionTimestamp"] = deleted
    told = [{"phase": name, "phaseTransitionTimestamp": f"2026-01-01T00:00:{at}Z"} for name, at in moments]
    return CachedObject.of(json.dumps({"metadata": metadata, "status": {"phase": phase, "phaseTransitionTimestamps": told}}).encode())


@pytest.mark.parametrize(
    ("change", "sums"),
    [
        (CacheChange(None, seen("Running")), {}),
        (CacheChange(seen("Running"), None), {}),
        (CacheChange(seen("Running"), seen("Running")), {}),
        (CacheChange(seen("Running"), seen("Odd")), {}),
        (CacheChange(seen("Scheduling"), seen("Running")), {"seconds": 4, "from_creation_seconds": 6}),
        (
            CacheChange(seen("Running"), seen("Succeeded", "2026-01-01T00:00:38Z")),
            {"seconds": 25, "from_creation_seconds": 31, "from_deletion_seconds": 2},
        ),
        (
            CacheChange(seen("Running"), seen("Succeeded", "2026-01-01T00:01:38Z")),
            {"seconds": 25, "from_creation_seconds": 31, "from_deletion_seconds": 0},
        ),
    ],
)
def test_phases(change: CacheChange, sums: dict[str, float]) -> None:
    metrics = MetricsRegistry()
    Phases(metrics).hear(change)
    found = read(metrics.text())
    totals = {key[0]: value for family in found.values() for key, value in family.series.items() if key[0].endswith("_sum")}
    assert totals == {f"{NAME}_{name}_sum": value for name, value in sums.items()}
