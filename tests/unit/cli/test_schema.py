"""`paddock schema`: the schema of one kind, or the files of all kinds, without a copy of the repository."""

import json
from pathlib import Path

from tests.unit.cli.commands import paddock


def test_the_schema_of_a_kind_goes_to_standard_output() -> None:
    answer = paddock("schema", "vmi")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["title"] == "VirtualMachineInstance (kubevirt.io)"


def test_a_name_of_several_kinds_is_kubevirts_unless_a_dialect_is_given() -> None:
    assert "other kinds of that name: virtualmachines.infra.virtrigaud.io" in paddock("schema", "vm").err
    answer = paddock("schema", "VirtualMachine", "--dialect", "stakater")
    assert json.loads(answer.out)["title"] == "VirtualMachine (infrastructure.stakater.com)"


def test_all_schemas_go_to_a_directory_and_are_those_of_the_repository(tmp_path: Path) -> None:
    answer = paddock("schema", "--out", str(tmp_path / "new" / "schemas"))
    assert answer.out == f"{tmp_path / 'new' / 'schemas' / 'paddock.json'}\n"
    committed = Path("api/jsonschema")
    names = {path.relative_to(committed) for path in committed.rglob("*.json")}
    assert names == {path.relative_to(tmp_path / "new" / "schemas") for path in (tmp_path / "new").rglob("*.json")}
    for name in names:
        assert (tmp_path / "new" / "schemas" / name).read_text() == (committed / name).read_text()


def test_mistakes_are_answered_with_the_way(tmp_path: Path) -> None:
    assert "name a kind to print, or a directory" in paddock("schema").err
    assert "`paddock explain vm.spec` describes the field" in paddock("schema", "vm.spec").err
    assert 'did you mean "VirtualMachine"?' in paddock("schema", "VirtualMachin").err
    (tmp_path / "file").write_text("")
    answer = paddock("schema", "--out", str(tmp_path / "file"))
    assert (answer.code, "name another directory" in answer.err) == (2, True)
