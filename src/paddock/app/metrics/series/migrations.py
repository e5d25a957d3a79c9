"""Series of migrations of instances: how many are in which phase, and when each began and ended."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from paddock.app.metrics.series.families import UNMEASURED_MIGRATION
from paddock.app.metrics.series.page import Sample, labels, sample
from paddock.kubernetes.meta import ages
from paddock.kubevirt.kinds.migration import VirtualMachineInstanceMigration

_FINAL = {"Succeeded": "succeeded", "Failed": "failed"}
# What has begun and is over in none of these ways counts as running.
_COUNTED = {"": "unset", "Pending": "pending", "Scheduling": "scheduling"}


class MigrationMetrics(msgspec.Struct, frozen=True):
    """The part of the page that one migration gives."""

    # pending, scheduling, running, unset; "": it is over
    counted: str
    samples: tuple[Sample, ...]


def metrics_of(migration: VirtualMachineInstanceMigration) -> MigrationMetrics:
    phase = (migration.status.phase if migration.status is not None else None) or ""
    if phase in _FINAL:
        counted = ""
    else:
        counted = _COUNTED.get(phase, "running")
    return MigrationMetrics(counted, tuple(_samples(migration, phase)))


def _samples(migration: VirtualMachineInstanceMigration, phase: str) -> Iterator[Sample]:
    name, instance, namespace = migration.metadata.name or "", migration.spec.vmiName or "", migration.metadata.namespace or ""
    if phase in _FINAL:
        yield sample(f"kubevirt_vmi_migration_{_FINAL[phase]}", labels(vmi=instance, vmim=name, namespace=namespace), 1)
    state = (migration.status.migrationState if migration.status is not None else None) or {}
    node = str(state.get("targetNode" if migration.spec.receive is not None else "sourceNode") or "")
    at = labels(node=node, namespace=namespace, name=instance, migration_name=name)
    for moment in ("start", "end"):
        seconds = ages.seconds_of(str(state.get(f"{moment}Timestamp") or ""))
        # What failed before it began was nowhere.
        if seconds is not None and node:
            status = f",{labels(status=_FINAL.get(phase, ''))}" if moment == "end" else ""
            yield sample(f"kubevirt_vmi_migration_{moment}_time_seconds", at + status, int(seconds))


def counts(migrations: Iterable[MigrationMetrics]) -> Iterator[Sample]:
    """Yield the number of migrations in each phase that is not the last."""
    found = Counter(each.counted for each in migrations)
    for phase in (*_COUNTED.values(), "running"):
        yield sample(f"kubevirt_vmi_migrations_in_{phase}_phase", "", found[phase])
    for family in UNMEASURED_MIGRATION:
        yield sample(family.name, "", 0)
