"""The output of `paddock examples` is good: every dialect's examples are valid and can be rendered and converted."""

from pathlib import Path

import pytest
import yaml

from paddock.cli.exits import GOOD
from paddock.dialects import translators as catalog
from tests.unit.cli.commands import paddock

DIALECTS = (*catalog.DIALECTS, catalog.HUB)


@pytest.fixture
def examples(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The examples of a dialect as a user has them: in a file."""
    answer = paddock("examples", "--dialect", request.param)
    assert answer.code == GOOD
    file = tmp_path / f"{request.param}.yaml"
    file.write_text(answer.out)
    return file


@pytest.mark.parametrize("examples", DIALECTS, indirect=True)
def test_examples_are_valid(examples: Path) -> None:
    answer = paddock("validate", "-f", str(examples))
    assert answer.code == GOOD, answer.out


@pytest.mark.parametrize("examples", DIALECTS, indirect=True)
def test_examples_render_to_objects_that_are_valid(examples: Path, tmp_path: Path) -> None:
    answer = paddock("render", "-f", str(examples))
    assert answer.code == GOOD, answer.err
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(answer.out)
    checked = paddock("validate", "--target", "cluster", "-f", str(rendered))
    assert checked.code == GOOD, checked.out


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("examples", DIALECTS, indirect=True)
def test_examples_convert_to_objects_that_are_valid(examples: Path, target: str, tmp_path: Path) -> None:
    answer = paddock("convert", "-f", str(examples), "--to", target)
    assert answer.code == GOOD, answer.err
    converted = tmp_path / "converted.yaml"
    converted.write_text(answer.out)
    if answer.out:
        checked = paddock("validate", "-f", str(converted))
        assert checked.code == GOOD, checked.out


@pytest.mark.parametrize("examples", DIALECTS, indirect=True)
def test_examples_do_not_differ_from_themselves(examples: Path) -> None:
    assert paddock("diff", "-f", str(examples), "-f", str(examples)) == (GOOD, "", "")


def test_examples_as_objects() -> None:
    answer = paddock("examples", "-o", "json")
    objects = yaml.load(answer.out, Loader=yaml.CSafeLoader)["items"]
    assert {item["apiVersion"].partition("/")[0] for item in objects} >= {
        "infra.virtrigaud.io",
        "infrastructure.stakater.com",
        "kubevirt.io",
        "vitistack.io",
    }


def test_examples_as_objects_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "examples.json"
    file.write_text(paddock("examples", "-o", "json").out)
    answer = paddock("validate", "-f", str(file))
    assert answer.code == GOOD, answer.out


def test_the_list_of_examples() -> None:
    answer = paddock("examples", "--list")
    assert all(Path(line).is_file() for line in answer.out.splitlines())
