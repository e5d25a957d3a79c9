"""docs/reference/dialects.md: its manifests are valid, and its losses are those that the commands report."""

import io
from pathlib import Path

import pytest

from paddock.cli import main
from paddock.cli.console import Console
from tools.referencepages import dialects
from tools.referencepages.dialects import Ability

DIALECTS, ABILITIES = dialects.words()
NAMES = [each.name for each in DIALECTS]


def command(*words: str) -> tuple[int, str, str]:
    out, err = io.BytesIO(), io.BytesIO()
    code = main.run(words, Console(out, err))
    return code, out.getvalue().decode(), err.getvalue().decode()


@pytest.mark.parametrize("name", NAMES)
def test_the_machine_of_the_page_is_valid(name: str, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(dialects.machine(name))
    code, out, err = command("validate", "-f", str(file))
    assert code == 0, out + err


@pytest.mark.parametrize(("source", "target"), [("kubevirt", "stakater"), ("stakater", "vitistack"), ("virtrigaud", "kubevirt")])
def test_the_losses_are_those_that_convert_prints(source: str, target: str, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(dialects.machine(source))
    _, _, err = command("convert", "-f", str(file), "--to", target)
    told = dialects.converted(file.read_text(), target).losses
    lines = [line for line in err.splitlines() if ": loss: " in line]
    assert len(lines) == len(told)
    assert all(any(text in line for line in lines) for text in told.values())


def test_each_value_of_the_page_is_beyond_another_dialect() -> None:
    kept = [
        each.path
        for each in ABILITIES
        if all(dialects.verdict(each, name, dialects.machine(each.dialect)) == "kept" for name in NAMES if name != each.dialect)
    ]
    assert kept == []


@pytest.mark.parametrize(
    ("ability", "target", "outcome"),
    [
        (Ability("kubevirt", "more processors", "spec.template.spec.domain.cpu.cores", 4), "stakater", "kept"),
        (Ability("kubevirt", "a TPM", "spec.template.spec.domain.devices.tpm", {}), "vitistack", "lost: a Machine has no field for it"),
        (Ability("kubevirt", "nonsense", "spec.template.spec.domain.cpu.cores", -1), "stakater", "refused"),
    ],
)
def test_verdicts(ability: Ability, target: str, outcome: str) -> None:
    assert dialects.verdict(ability, target, dialects.machine(ability.dialect)) == outcome


def test_no_line_of_the_page_ends_within_a_name() -> None:
    page = dialects.page()
    assert [line for line in page.splitlines() if line.endswith("-") and not line.startswith(("-", "|"))] == []
    assert "web-rootdisk" in page
