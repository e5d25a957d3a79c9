"""The migrations that move volumes: when one is made, and when it goes."""

import pytest
from msgspec.structs import replace

from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.migration import VirtualMachineInstanceMigration
from paddock.kubevirt.kinds.migrationpolicy import MigrationPolicy
from paddock.kubevirt.plan.machine import migrations
from paddock.kubevirt.plan.machine.migrations import MigrationPlan

NOW = 1_000_000.0
CHANGING = [{"type": "VolumesChange", "status": "True"}]


def instance(phase: str = "Running", conditions: list[dict[str, str]] | None = None, **state: object) -> VirtualMachineInstance:
    status = {"phase": phase, "conditions": CHANGING if conditions is None else conditions, "migrationState": state or None}
    return from_data({"metadata": {"name": "web", "namespace": "here", "uid": "u"}, "spec": {}, "status": status}, VirtualMachineInstance)


def migration(name: str, phase: str = "", ago: float = 0.0) -> VirtualMachineInstanceMigration:
    status = {"phase": phase, "migrationState": {"endTimestamp": ages.timestamp(NOW - ago)}}
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": ages.timestamp(NOW - ago - 1)}
    return from_data({"metadata": metadata, "spec": {"vmiName": "web"}, "status": status}, VirtualMachineInstanceMigration)


@pytest.mark.parametrize(
    ("of", "known", "expected"),
    [
        (instance(), [], MigrationPlan(create=True)),
        (instance(), [migration("a", "Running")], MigrationPlan()),
        (instance(conditions=[]), [], MigrationPlan()),
        (instance(conditions=[]), [migration("a", "Running")], MigrationPlan(delete=("a",))),
        (instance(phase="Scheduled"), [migration("a")], MigrationPlan(delete=("a",))),
        # It ended, and the migration is about to say so.
        (instance(conditions=[], migrationUid="uid-a", completed=True), [migration("a", "Running")], MigrationPlan()),
        # It was called off.
        (
            instance(conditions=[], migrationUid="uid-a", completed=True, abortRequested=True),
            [migration("a", "Running")],
            MigrationPlan(delete=("a",)),
        ),
        (instance(phase="Failed"), [migration("a", "Running")], MigrationPlan()),
        (instance(), [migration("a", "Succeeded")], MigrationPlan(create=True)),
        (instance(), [migration("a", "Failed", 5)], MigrationPlan(again=15.0)),
        (instance(), [migration("a", "Failed", 20)], MigrationPlan(create=True)),
        (instance(), [migration("a", "Failed", 90), migration("b", "Failed", 5)], MigrationPlan(again=35.0)),
        (
            instance(),
            [migration("a", "Failed", 90), migration("b", "Succeeded", 50), migration("c", "Failed", 5)],
            MigrationPlan(again=15.0),
        ),
        (instance(), [migration(str(n), "Failed", 9000 - n) for n in range(7)], MigrationPlan(create=True, delete=("0", "1"))),
    ],
)
def test_what_is_done_about_the_migrations_of_an_instance(
    of: VirtualMachineInstance, known: list[VirtualMachineInstanceMigration], expected: MigrationPlan
) -> None:
    assert migrations.plan(of, known, NOW) == expected


def test_a_long_name_does_not_fit_into_a_label() -> None:
    made = migrations.made(instance())
    assert made["metadata"]["labels"] == {"kubevirt.io/volume-update-migration": "web"} and made["spec"]["priority"] == "user-triggered"
    of = instance()
    long = replace(of, metadata=replace(of.metadata, name="w" * 64))
    assert migrations.made(long)["metadata"]["labels"] == {"kubevirt.io/volume-update-migration": "u"}


@pytest.mark.parametrize(
    ("namespace", "labels", "expected"),
    [
        ({}, {}, None),
        ({}, {"a": "1"}, "one"),
        ({}, {"a": "1", "b": "2"}, "two"),
        ({"n": "1"}, {}, "place"),
        ({"n": "1"}, {"a": "1"}, "one"),
        ({"n": "2"}, {"b": "2"}, None),
    ],
)
def test_the_policy_with_most_labels_counts(namespace: dict[str, str], labels: dict[str, str], expected: str | None) -> None:
    selectors = {
        "two": {"virtualMachineInstanceSelector": {"a": "1", "b": "2"}},
        "one": {"virtualMachineInstanceSelector": {"a": "1"}},
        "place": {"namespaceSelector": {"n": "1"}},
        "nobody": {},
    }
    policies = [from_data({"metadata": {"name": name}, "spec": {"selectors": each}}, MigrationPolicy) for name, each in selectors.items()]
    found = migrations.chosen(policies, namespace, labels)
    assert (found.metadata.name if found is not None else None) == expected
