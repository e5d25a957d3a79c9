"""Every row of the mapping: what a field becomes, and what is told when it does not become anything."""

import json
from typing import Any

import pytest

from tests.unit.dialects.virtrigaud.translate import rows_class, rows_machine, rows_network
from tests.unit.dialects.virtrigaud.translate.making import Made, at, made, plain
from tests.unit.dialects.virtrigaud.translate.rows import Row

ROWS = (*rows_class.ROWS, *rows_machine.ROWS, *rows_network.ROWS)
# Of the scene itself nothing is lost.
NOTHING = made()


def config(result: Made) -> Any:
    (definition,) = result.definitions
    assert definition.spec is not None
    return json.loads(definition.spec.config or "")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_row(row: Row) -> None:
    result = made(row.changes)
    machine = plain(result.machine)
    assert {path: at(machine, path) for path in row.machine} == row.machine
    if row.config:
        document = config(result)
        assert {path: at(document, path) for path in row.config} == row.config
    assert sorted(f"{of} {field}" for of, field in result.lost()) == sorted(row.lost)
    for loss in result.losses:
        assert loss.why
        assert loss.instead


def test_nothing_of_a_plain_scene_is_lost() -> None:
    assert NOTHING.losses == ()
    assert [each.kind for each in NOTHING.resources] == ["NetworkAttachmentDefinition", "VirtualMachine"]


@pytest.mark.spec("virtrigaud", 31)
def test_a_machine_that_says_nothing_about_power_is_on() -> None:
    on = made({"VirtualMachine": {".powerState": "On"}})
    assert NOTHING.machine == on.machine
    assert plain(on.machine)["spec"]["runStrategy"] == "Always"
