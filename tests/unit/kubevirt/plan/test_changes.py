"""The table of changes: it knows every field of every kind, and nothing else."""

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import Kind
from paddock.kubevirt.plan.changes.differences import ABSENT, FieldDifference, ValueChange
from paddock.kubevirt.plan.changes.effects import Effect, best
from paddock.kubevirt.plan.changes.patterns import parse
from paddock.kubevirt.plan.changes.table import effects_of, judge, row_for, rows_of
from tests.unit.kubevirt.plan.fields import places

# Nobody writes Events.
KINDS = [kind for kind in catalog.every() if (kind.group, kind.kind) != ("", "Event")]
# Kinds of which everything has the same effect; in all others each field has to be thought about.
CHANGES = {kind: rows for dialect in catalog.every_dialect() for kind, rows in effects_of(dialect.name).items()}
WHOLE = {kind for kind, rows in CHANGES.items() if rows and rows[0].path == "spec"}


def name(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group or 'core'}"


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_every_field_has_a_row(kind: Kind) -> None:
    rows = rows_of(kind)
    for parts in places(kind):
        if len(parts) == 1 and parts[0] == "spec" and (kind.group, kind.kind) not in WHOLE:
            continue
        if any(len(row.parts) > len(parts) and row.parts[: len(parts)] == parts for row in rows) and best(rows, parts) is None:
            # An object whose members have rows of their own.
            continue
        assert best(rows, parts) is not None, ".".join(parts)


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_every_row_has_a_field(kind: Kind) -> None:
    known = set(places(kind))
    for row in CHANGES[kind.group, kind.kind]:
        assert row.parts in known, row.path


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_no_row_stands_twice(kind: Kind) -> None:
    rows = [(row.path, row.when, row.having) for row in rows_of(kind)]
    assert len(rows) == len(set(rows))


def test_a_dialect_has_rows_for_its_own_kinds() -> None:
    for dialect in catalog.every_dialect():
        assert set(effects_of(dialect.name)) <= set(dialect.kinds)


STAKATER = ("infrastructure.stakater.com", "VirtualMachine")
VITISTACK = ("vitistack.io", "Machine")
MACHINE = ("kubevirt.io", "VirtualMachine")
POOL = ("pool.kubevirt.io", "VirtualMachinePool")
FLAT_POOL = ("kubevirt.io", "VirtualMachinePool")
RIGAUD = ("infra.virtrigaud.io", "VirtualMachine")
T: Path = ("spec", "template", "spec")
P: Path = ("spec", "parameters")
V: Path = ("spec", "virtualMachineTemplate", "spec")


@pytest.mark.parametrize(
    ("kind", "path", "how", "entry", "effect"),
    [
        (STAKATER, (*P, "cpu", "cores"), ValueChange.UP, None, Effect.RESTART),
        (STAKATER, (*P, "cpu", "sockets"), ValueChange.UP, None, Effect.LIVE),
        (STAKATER, (*P, "cpu", "sockets"), ValueChange.DOWN, None, Effect.RESTART),
        (STAKATER, (*P, "memory", "guest"), ValueChange.UP, None, Effect.LIVE),
        (STAKATER, (*P, "storage", "size"), ValueChange.UP, None, Effect.LIVE),
        (STAKATER, (*P, "storage", "size"), ValueChange.DOWN, None, Effect.LOSS),
        (STAKATER, (*P, "dataSource", "name"), ValueChange.CHANGED, None, Effect.LOSS),
        (STAKATER, (*P, "additionalDisks", 1), ValueChange.ADDED, {}, Effect.RESTART),
        (STAKATER, (*P, "additionalDisks", 1, "accessModes"), ValueChange.CHANGED, None, Effect.LOSS),
        (STAKATER, (*P, "additionalDisks", 1, "bus"), ValueChange.CHANGED, None, Effect.RESTART),
        (STAKATER, (*P, "additionalDisks"), ValueChange.REORDERED, None, Effect.RESTART),
        (STAKATER, (*P, "cloudInit", "userData"), ValueChange.CHANGED, None, Effect.RESTART),
        (STAKATER, (*P, "service", "port"), ValueChange.UP, None, Effect.LIVE),
        (STAKATER, (*P, "additionalLabels", "a/b.c"), ValueChange.ADDED, "x", Effect.LIVE),
        (STAKATER, ("spec", "crossplane"), ValueChange.CHANGED, None, Effect.NONE),
        (STAKATER, ("metadata", "labels", "x"), ValueChange.ADDED, "y", Effect.LIVE),
        (VITISTACK, ("spec", "disks", 0, "size"), ValueChange.DOWN, None, Effect.LOSS),
        (VITISTACK, ("spec", "disks", 0, "storageClass"), ValueChange.CHANGED, None, Effect.LOSS),
        (VITISTACK, ("spec", "networks", 0, "macAddress"), ValueChange.CHANGED, None, Effect.RESTART),
        (VITISTACK, ("spec", "cloudInit", "userData"), ValueChange.CHANGED, None, Effect.RESTART),
        (VITISTACK, ("spec", "template"), ValueChange.CHANGED, None, Effect.RESTART),
        (MACHINE, ("spec", "runStrategy"), ValueChange.CHANGED, None, Effect.LIVE),
        (MACHINE, (*T, "hostname"), ValueChange.CHANGED, None, Effect.RESTART),
        (MACHINE, (*T, "domain", "cpu", "threads"), ValueChange.UP, None, Effect.RESTART),
        (MACHINE, (*T, "domain", "cpu", "sockets"), ValueChange.UP, None, Effect.LIVE),
        (MACHINE, (*T, "tolerations"), ValueChange.CHANGED, None, Effect.LIVE),
        (MACHINE, (*T, "volumes", 2), ValueChange.ADDED, {"name": "x", "dataVolume": {"name": "y"}}, Effect.LIVE),
        (MACHINE, (*T, "volumes", 2), ValueChange.ADDED, {"name": "x", "containerDisk": {"image": "y"}}, Effect.RESTART),
        (MACHINE, (*T, "volumes", 0, "persistentVolumeClaim", "claimName"), ValueChange.CHANGED, None, Effect.RESTART),
        (MACHINE, (*T, "domain", "devices", "interfaces", 1), ValueChange.ADDED, {"name": "x", "bridge": {}}, Effect.LIVE),
        (MACHINE, (*T, "domain", "devices", "interfaces", 1), ValueChange.ADDED, {"name": "x", "masquerade": {}}, Effect.RESTART),
        (MACHINE, (*T, "domain", "devices", "interfaces", 1, "state"), ValueChange.CHANGED, None, Effect.LIVE),
        (MACHINE, ("spec", "template", "metadata", "labels", "a"), ValueChange.CHANGED, None, Effect.RESTART),
        (MACHINE, ("spec", "dataVolumeTemplates", 0, "spec", "pvc"), ValueChange.CHANGED, None, Effect.NONE),
        (MACHINE, ("spec", "dataVolumeTemplates", 0), ValueChange.ADDED, {}, Effect.LIVE),
        (POOL, ("spec", "replicas"), ValueChange.UP, None, Effect.LIVE),
        (POOL, ("spec", "replicas"), ValueChange.DOWN, None, Effect.LOSS),
        (POOL, (*V, "dataVolumeTemplates", 0, "spec"), ValueChange.CHANGED, None, Effect.LOSS),
        (POOL, (*V, "template", "spec", "domain"), ValueChange.CHANGED, None, Effect.RESTART),
        (POOL, ("spec", "virtualMachineTemplate", "metadata", "labels", "a"), ValueChange.CHANGED, None, Effect.LIVE),
        (FLAT_POOL, ("spec", "virtualMachineTemplate", "metadata", "labels", "a"), ValueChange.CHANGED, None, Effect.RESTART),
        (FLAT_POOL, (*V, "domain", "memory"), ValueChange.CHANGED, None, Effect.RESTART),
        (RIGAUD, ("spec", "disks", 0, "sizeGiB"), ValueChange.UP, None, Effect.LIVE),
        (RIGAUD, ("spec", "disks", 0, "sizeGiB"), ValueChange.DOWN, None, Effect.LOSS),
        (RIGAUD, ("spec", "disks", 0), ValueChange.REMOVED, {}, Effect.LIVE),
        (RIGAUD, ("spec", "resources", "cpu"), ValueChange.DOWN, None, Effect.RESTART),
        (RIGAUD, ("spec", "snapshot", "revertToRef", "name"), ValueChange.ADDED, "s", Effect.LOSS),
        (RIGAUD, ("spec", "snapshot", "revertToRef", "name"), ValueChange.REMOVED, "s", Effect.NONE),
        (RIGAUD, ("spec", "providerRef", "name"), ValueChange.CHANGED, None, Effect.LOSS),
        (("cdi.kubevirt.io", "DataVolume"), ("spec", "source", "http", "url"), ValueChange.CHANGED, None, Effect.LOSS),
        (("cdi.kubevirt.io", "DataSource"), ("spec", "source", "http", "url"), ValueChange.CHANGED, None, Effect.NONE),
    ],
)
def test_effects_that_the_specifications_name(kind: tuple[str, str], path: Path, how: ValueChange, entry: object, effect: Effect) -> None:
    found = catalog.find(*kind)
    assert found is not None
    before, after = (entry, ABSENT) if how is ValueChange.REMOVED else (ABSENT, entry)
    row = judge(found, FieldDifference(how, path, path, before, after))
    assert row is not None
    assert row.effect is effect
    assert row.why


@pytest.mark.parametrize(
    ("kind", "path", "effect"),
    [
        (STAKATER, "spec.parameters.additionalDisks.size", Effect.LIVE),
        (STAKATER, "spec.parameters.cpu.cores", Effect.RESTART),
        (MACHINE, "spec.template.spec.domain.devices.disks.name", Effect.RESTART),
        (MACHINE, "spec.template.metadata.labels", Effect.RESTART),
        (STAKATER, "spec", None),
    ],
)
def test_a_field_as_users_write_its_path(kind: tuple[str, str], path: str, effect: Effect | None) -> None:
    found = catalog.find(*kind)
    assert found is not None
    row = row_for(found, parse(path))
    assert (row and row.effect) == effect


def test_effects_have_an_order() -> None:
    assert sorted(Effect, key=lambda effect: effect.weight) == [Effect.NONE, Effect.LIVE, Effect.RESTART, Effect.RECREATE, Effect.LOSS]
