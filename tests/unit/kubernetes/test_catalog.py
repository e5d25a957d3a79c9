"""The catalog's table equals what is declared, in both directions."""

import pkgutil
import subprocess
import sys
from collections import Counter
from importlib import import_module

import pytest

import paddock.dialects
import paddock.kubernetes.core
import paddock.kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import Kind, KindFacts

ROOTS = (paddock.kubernetes.core, paddock.kubevirt, paddock.dialects)


def _declared() -> dict[tuple[str, str], str]:
    """(group, kind) -> module, for every module of kinds that has KINDS of its own."""
    found: dict[tuple[str, str], str] = {}
    for module in (each.name for root in ROOTS for each in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")):
        if ".kinds." not in module and not module.startswith("paddock.kubernetes.core."):
            continue
        kinds: tuple[Kind, ...] = vars(import_module(module)).get("KINDS", ())
        for kind in kinds:
            assert (kind.group, kind.kind) not in found, f"{module} declares {kind.kind} of {kind.group} again"
            found[kind.group, kind.kind] = module
    return found


def test_the_table_is_what_the_modules_declare() -> None:
    assert {(kind.group, kind.kind): catalog.module_of(kind.group, kind.kind) for kind in catalog.every()} == _declared()


def test_every_dialect_has_kinds_and_every_kind_a_dialect() -> None:
    dialects = {kind.dialect for kind in catalog.every()}
    assert dialects == {*catalog.DIALECTS, "core"}
    for kind in catalog.every():
        assert f".{kind.dialect}." in catalog.module_of(kind.group, kind.kind)


def test_a_kind_is_found_by_its_group_and_name() -> None:
    for group, kind in catalog.known():
        found = catalog.find(group, kind)
        assert found is not None
        assert (found.group, found.kind) == (group, kind)
    assert catalog.find("kubevirt.io", "Nothing") is None
    assert catalog.find("", "VirtualMachine") is None


@pytest.mark.parametrize("names", ["plural", "short"])
def test_no_two_kinds_of_a_group_want_the_same_name(names: str) -> None:
    wanted = Counter(
        (kind.group, name)
        for kind in catalog.every()
        for name in ([kind.plural] if names == "plural" else kind.short_names if kind.alias_of is None else [])
    )
    assert [name for name, count in wanted.items() if count > 1] == []


def test_an_alias_is_of_a_kind_that_there_is() -> None:
    for kind in catalog.every():
        if kind.alias_of is not None:
            assert catalog.find(*kind.alias_of) is not None


def test_facts_are_those_of_the_declarations() -> None:
    assert [catalog.declaration(each) for each in catalog.facts()] == list(catalog.every())
    for each in catalog.facts():
        declared = catalog.declaration(each)
        assert all(getattr(each, name) == getattr(declared, name) for name in KindFacts.__struct_fields__)


def test_facts_load_no_declaration() -> None:
    program = (
        "import sys; from paddock.kubernetes import catalog; catalog.facts(); print(*(each for each in sys.modules if '.kinds.' in each))"
    )
    made = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    # The packages hold the values of the dialects, and some their marks.
    assert set(made.stdout.split()) <= {"paddock.dialects.stakater.kinds.marks", "paddock.dialects.vitistack.kinds.marks"}
