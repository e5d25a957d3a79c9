"""The parser on the real specs, whose items were counted by hand, and on the shapes that could mislead it."""

from pathlib import Path

import pytest

from tools.conformance.checklist import SPECS, ChecklistError, parse, read_checklists

SPEC_FOLDER = Path(__file__).parents[4] / "docs" / "spec"

COUNTS = {"stakater": 72, "vitistack": 96, "kubermatic": 74, "virtrigaud": 179, "kubevirt": 302, "kube-api": 173}


def test_every_spec_has_exactly_its_items() -> None:
    found = read_checklists(SPEC_FOLDER)
    assert {spec: len(items) for spec, items in found.items()} == COUNTS
    assert tuple(found) == SPECS
    for items in found.values():
        assert [item.number for item in items] == list(range(1, len(items) + 1))
        assert all(item.text for item in items)


@pytest.mark.parametrize(
    ("spec", "number", "text"),
    [
        ("stakater", 5, "Seed Full translates to exactly 2.4 (three objects)."),
        ("stakater", 34, "`passwordExpire: true` renders `expire: true`."),
        ("stakater", 70, "No log line, event or condition contains the password."),
        ("vitistack", 2, "Example 1 equals 2.4;"),
        ("vitistack", 3, "example 2 equals 2.5;"),
        ("vitistack", 38, "`MAC_SET=ab` changes octet 2."),
        ("vitistack", 46, "secretRef key `userdata` referenced directly; key `foo` copied to `<m>-cloudinit`."),
        ("kubermatic", 50, "Selector not matching labels refused; empty refused; change refused."),
        ("virtrigaud", 10, "(S) extraConfig with 51 keys rejected."),
        ("kubevirt", 109, "Documentation: per-field support table generated from the same data as tests 7 and 61."),
        ("kube-api", 135, "Clock steps backwards: RVs and watches unaffected; tokens and ages degrade only."),
    ],
)
def test_item_text(spec: str, number: int, text: str) -> None:
    assert read_checklists(SPEC_FOLDER)[spec][number - 1].text == text


def test_group_headings_and_figures_are_no_items() -> None:
    items = parse("## 9. Checklist\n\n**Seeds**\n1. Equals 2.4; one of 3 gives 2 only. 2. Second.\n\nOther\n3. Third.\n", name="x")
    assert [item.text for item in items] == ["Equals 2.4; one of 3 gives 2 only.", "Second.", "Third."]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("# nothing\n", "no section"),
        ("## 7. Testable statements\n\n", "has no items"),
        ("## 7. Testable statements\n1. One.\n3. Three.\n", "expected item 2"),
        ("## 7. Testable statements\n1. One.\n1. Again.\n", "expected item 2"),
    ],
)
def test_a_gap_is_an_error(document: str, message: str) -> None:
    with pytest.raises(ChecklistError, match=message):
        parse(document, name="x")
