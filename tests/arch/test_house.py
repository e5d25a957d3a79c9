"""The numbers of the house get better and not worse (`tools/house.py`, `tools/house.toml`)."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.arch.trees import PACKAGE, every_tree
from tools import house
from tools.house import Module


@cache
def modules() -> tuple[Module, ...]:
    return tuple(module(path.relative_to(PACKAGE.parent), path.read_text(encoding="utf-8"), tree) for path, tree in every_tree())


def module(path: Path, text: str, tree: ast.Module | None = None) -> Module:
    tree = tree or ast.parse(text)
    return Module(path, tree, text.count("\n"), tuple(ast.walk(tree)))


@pytest.mark.parametrize("name", house.MEASURES)
def test_no_number_is_past_its_limit(name: str) -> None:
    if name in house.FREE:
        return
    number, limit = house.MEASURES[name](modules()), house.limits()[name].limit
    assert not house.is_past(name, number, limit), f"{name}: {number}; the limit is {limit} (tools/house.toml)"


@pytest.mark.parametrize("name", house.TESTS)
def test_no_number_of_the_tests_is_past_its_limit(name: str) -> None:
    number, limit = house.TESTS[name](house.ROOT / "tests"), house.limits()[name].limit
    assert not house.is_past(name, number, limit), f"{name}: {number}; the limit is {limit} (tools/house.toml)"


def test_the_file_has_every_measure_and_a_reason_for_each_goal_that_is_not_met() -> None:
    known = house.limits()
    assert list(known) == [*house.MEASURES, *house.TESTS]
    for name, row in known.items():
        assert bool(row.why) == house.is_past(name, row.limit, row.goal) or name in house.FREE, name


def test_dialects_are_listed_once() -> None:
    source = 'A = ("stakater", "virtrigaud", "vitistack")\nB = {"stakater": 1, "vitistack": 2, "kubermatic": 3}\nC = ("stakater",)\n'
    assert house.MEASURES["lists of dialects"]([module(Path("paddock/app/x.py"), source)]) == 2


def test_what_names_a_dialect() -> None:
    own, text = Path("paddock/dialects/vitistack/x.py"), "'''Vitistack.'''\n"
    inside, outside = module(own, "VITISTACK = 1"), module(Path("paddock/cli/x.py"), "K = 'machines.vitistack.io'")
    assert list(house.naming([inside, outside, module(Path("paddock/cli/y.py"), text)], "vitistack")) == [outside.path]


def test_what_only_forwards() -> None:
    source = "def a(x): return b(x)\nasync def c(self, x): await self.d(x)\ndef e(x): return f(x, 1)\ndef g(x): return x\n"
    assert house.MEASURES["functions that only forward"]([module(Path("paddock/base/x.py"), source)]) == 2


def test_a_nested_coroutine_is_one_in_a_test_that_is_none() -> None:
    source = "def test_a():\n async def script(): ...\nasync def test_b():\n async def fake(): ...\ndef c():\n async def inside(): ...\n"
    assert list(house.nested_coroutines(ast.parse(source))) == ["test_a"]


def test_limits_are_tightened_and_never_loosened() -> None:
    known = {"lists of dialects": house.Limit(3, 1, "why")}
    assert "limit = 2\n" in next(house.tightened({"lists of dialects": 2}, known))
    assert "limit = 3\n" in next(house.tightened({"lists of dialects": 4}, known))
    assert 'why = "why"' in next(house.tightened({"lists of dialects": 2}, known))


def test_a_goal_that_is_met_needs_no_reason() -> None:
    known = {"lists of dialects": house.Limit(3, 1, "why")}
    assert "why" not in next(house.tightened({"lists of dialects": 1}, known))


def test_the_page_says_what_stands_in_the_way() -> None:
    lines = list(house.page({"top rooms": 3}, {"top rooms": house.Limit(3, 1, "moving takes long")}))
    assert lines[2:] == ["| top rooms | 3 | 3 | 1 |", "", "- top rooms: moving takes long"]
