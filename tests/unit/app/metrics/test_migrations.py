"""Series of migrations: phases are counted, and what is over says how and when."""

from typing import Any

from paddock.app.metrics.series import migrations
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.migration import VirtualMachineInstanceMigration


def metrics_of(phase: str, spec: dict[str, Any] | None = None, **state: Any) -> migrations.MigrationMetrics:
    document = {
        "metadata": {"name": "move", "namespace": "shop"},
        "spec": {"vmiName": "web", **(spec or {})},
        "status": {"phase": phase, "migrationState": state},
    }
    return migrations.metrics_of(from_data(document, VirtualMachineInstanceMigration))


def test_a_migration_that_is_over_says_how_and_when() -> None:
    done = metrics_of(
        "Succeeded", sourceNode="a", targetNode="b", startTimestamp="2026-01-01T00:00:00Z", endTimestamp="2026-01-01T00:00:02Z"
    )
    at = 'node="a",namespace="shop",name="web",migration_name="move"'
    assert [line for _, line in done.samples] == [
        'kubevirt_vmi_migration_succeeded{vmi="web",vmim="move",namespace="shop"} 1',
        f"kubevirt_vmi_migration_start_time_seconds{{{at}}} 1767225600",
        f'kubevirt_vmi_migration_end_time_seconds{{{at},status="succeeded"}} 1767225602',
    ]
    assert done.counted == ""
    assert [name for name, _ in metrics_of("Failed", endTimestamp="2026-01-01T00:00:02Z").samples] == ["kubevirt_vmi_migration_failed"]


def test_the_node_of_a_migration_is_the_one_of_its_side() -> None:
    arriving = metrics_of(
        "Running", {"receive": {"migrationID": "1"}}, sourceNode="a", targetNode="b", startTimestamp="2026-01-01T00:00:00Z"
    )
    assert 'node="b"' in arriving.samples[0][1]


def test_what_is_under_way_is_counted_by_its_phase() -> None:
    phases = (
        "",
        "Pending",
        "Scheduling",
        "Scheduled",
        "PreparingTarget",
        "WaitingForSync",
        "Synchronizing",
        "Running",
        "Succeeded",
        "Failed",
    )
    counted = {name: line.rpartition(" ")[2] for name, line in migrations.counts(map(metrics_of, phases))}
    assert {name.split("_")[4]: number for name, number in counted.items() if "phase" in name} == {
        "unset": "1",
        "pending": "1",
        "scheduling": "1",
        "running": "5",
    }
