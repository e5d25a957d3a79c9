"""The reference page of fields is the table, and nothing but the table."""

from pathlib import Path

import pytest

from paddock.kubevirt.kinds import virtualmachine
from paddock.kubevirt.translate.limits import Code
from tests.unit.kubevirt.kinds.test_rules import CASES
from tools import gen
from tools.kubevirtsupport import table

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "kubevirt-fields.md"


@pytest.mark.spec("kubevirt", 109)
def test_the_page_is_generated_from_what_the_tests_carry_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == gen.reference_pages()[PAGE.name]
    for row in (*table.ROWS, *table.ANNOTATIONS, *table.MACHINE):
        assert f"| `{row.field}` | {row.by} | " in text
    for code in Code:
        assert f"| {code.reason} | {code.weight.value} | {code.sentence} |" in text
    told = {rule.id.removeprefix("kubevirt/") for rule in virtualmachine.KINDS[0].rules}
    assert all(f"| {name} | " in text for name in told)
    # The numbers on the page are those that the table of refused machines has cases for.
    numbers = {int(name[1:]) for name in told if name.startswith("V") and name[1:].isdigit()}
    assert numbers <= {case.number for case in CASES}
    assert table.unspoken() == []


def test_a_field_without_a_row_is_noticed() -> None:
    rows = [row for row in table.ROWS if row.field != "domain.cpu.cores"]
    assert table.missing(rows, ["domain.cpu.cores", "domain.cpu.sockets", "affinity.podAffinity"]) == ["domain.cpu.cores"]
