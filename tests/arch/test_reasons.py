"""Reason codes: each that an emitter writes has a rule of `paddock why` or needs none, and each of a rule is written by somebody."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import get_args, get_type_hints

import pytest

from paddock.base import reasons
from paddock.engine.machine.observation import EndReason, GuestFault
from paddock.fleet.diagnosis.table import ENTRIES, FOREIGN, LOOKING, UNRULED, WORDS, every
from paddock.kubevirt.plan.instance import ends
from paddock.kubevirt.translate.limits import Code, Weight
from tests.arch.trees import DRIVERS, PACKAGE, trees_of

EMITTERS = ("app", "base/images", "base/seeds", "contract", "dialects", "engine", "kubernetes/runtime", "kubevirt", "server")
# Where a reason is written: the function, and the position of the reason among its arguments. Keyword `reason` counts everywhere here.
SINKS: Mapping[str, int] = {
    "ApplyBlocker": 99,
    "Condition": 99,
    "ConditionText": 2,
    "DataCondition": 99,
    "ExportUnavailable": 0,
    "SourceBlocker": 0,
    "StartBlocker": 0,
    "TransferBlocked": 0,
    "UnclearContent": 0,
    "_false": 1,
    "failed": 0,
    "no": 0,
    "refused": 0,
    "_refused": 1,
    "volumes": 0,
    "waiting": 0,
}
_CODE = re.compile(r"[A-Z][A-Za-z]+")
# Rules that still read a sentence of Paddock's own, and why no code stands beside it.
OWN_SENTENCES: Mapping[str, str] = {
    "claim-lost": "Vitistack's specification gives the condition StorageReady one reason for every trouble (PVCPending)",
    "image-too-large": "Stakater's specification gives the condition Synced one reason for every trouble (ReconcileError)",
    "instance-foreign": "KubeVirt's reason of Failure, FailedCreate, which clients compare",
    "name-conflict": "the words of an error that fronts repeat under a reason of their own specification",
    "qemu-silent": "records of earlier versions, whose condition NeedsAttention has the reason SaidByEngine",
    **dict.fromkeys(
        (
            "snapshot-volumes-empty",
            "operation-under-way",
            "restore-target-running",
            "restore-snapshot-failed",
            "restore-claim-taken",
            "restore-refused",
            "restore-snapshot-waited-for",
            "restore-filling",
            "clone-target-exists",
            "clone-machine-missing",
        ),
        "KubeVirt's snapshot, restore and clone conditions have the sentence in the place of the reason, and so have these",
    ),
}


@cache
def trees() -> tuple[ast.Module, ...]:
    modules = (*(each for layer in EMITTERS for each in trees_of(layer)), *trees_of(".", DRIVERS))
    return tuple(tree for _, tree in modules)


def literals(node: ast.AST | None) -> Iterator[str]:
    """The codes that an argument may be: a literal, or either arm of a choice."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.fullmatch(node.value):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from literals(node.body)
        yield from literals(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for each in node.values:
            yield from literals(each)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _constants().get(node.id if isinstance(node, ast.Name) else node.attr, ())


@cache
def _constants() -> Mapping[str, frozenset[str]]:
    """The codes that have a name, by that name: constants of modules and classes."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for each in targets:
                    # The name under which a controller logs is no code.
                    if isinstance(each, ast.Name) and each.id.isupper() and each.id != "CONTROLLER":
                        found[each.id] |= set(literals(node.value))
    return {name: frozenset(codes) for name, codes in found.items()}


@cache
def spelled() -> frozenset[str]:
    """Every word in the emitters' code that may be a code; wider than `written`, which knows where reasons are written."""
    return frozenset(code for tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Constant) for code in literals(node))


def _holds(call: ast.Call) -> bool:
    """Return whether a condition says that all is well: a ready object needs no rule."""
    status = next((each.value for each in call.keywords if each.arg == "status"), None)
    type_ = next((each.value for each in call.keywords if each.arg == "type"), None)
    bad_when_true = ("Paused", "NeedsAttention", "RestartRequired", "ReplicaFailure", "ReplicaPaused", "Failure")
    true = isinstance(status, ast.Constant) and status.value == "True"
    return true and not (isinstance(type_, ast.Constant) and type_.value in bad_when_true)


def _written(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "reasons"
            and hasattr(reasons, node.attr)
        ):
            yield from literals(ast.Constant(getattr(reasons, node.attr)))
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        position = _event_position(node, name) if name in ("tell", "_tell", "note", "InstanceEvent") else SINKS.get(name)
        if position is None or _holds(node):
            continue
        if position < len(node.args):
            yield from literals(node.args[position])
        yield from (found for each in node.keywords if each.arg == "reason" for found in literals(each.value))


def _event_position(call: ast.Call, name: str) -> int | None:
    """Warnings alone: a normal event is no trouble."""
    if name == "note":
        return 1
    weights = [index for index, each in enumerate(call.args) if isinstance(each, ast.Constant) and each.value == "Warning"]
    return weights[0] + 1 if weights else None


@cache
def written() -> frozenset[str]:
    """Every code that somebody writes."""
    found = {code for tree in trees() for code in _written(tree)}
    found |= set(get_args(get_type_hints(GuestFault)["reason"]))
    found |= {each.reason for each in Code if each.weight is not Weight.NOTE}
    return frozenset(found | set(ends.CODES.values()))


def ruled() -> frozenset[str]:
    return frozenset(code for entry in WORDS for code in entry.reasons)


@pytest.mark.spec("kubevirt", 131)
def test_each_code_that_is_written_has_a_rule_or_needs_none() -> None:
    assert sorted(written() - ruled() - UNRULED.keys()) == []
    assert sorted(reasons.codes() - written()) == [], "nobody writes them"


def test_each_code_of_a_rule_is_written_or_foreign() -> None:
    assert sorted(ruled() - written() - spelled() - FOREIGN.keys()) == []
    assert sorted(FOREIGN.keys() & (written() | spelled())) == [], "these are written here"
    assert sorted(FOREIGN.keys() - ruled()) == [], "these have no rule"


def test_what_needs_no_rule_has_a_reason_and_no_rule() -> None:
    assert sorted(UNRULED.keys() & ruled()) == []
    assert sorted(UNRULED.keys() - written()) == [], "nobody writes these"
    assert all(text.endswith(".") for text in (*UNRULED.values(), *FOREIGN.values()))


def test_each_end_of_a_run_that_is_a_failure_has_a_code() -> None:
    assert set(ends.CODES) <= set(get_args(EndReason))
    assert set(get_args(EndReason)) - set(ends.CODES) == {"guest-shutdown", "guest-reboot", "saved", "discarded"}


def test_sentences_of_our_own_are_read_only_where_no_code_can_stand() -> None:
    assert {entry.id for entry in WORDS if entry.own} == set(OWN_SENTENCES)


def test_the_rules_are_in_the_package() -> None:
    data = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["*"]
    assert "*.toml" in data


def test_only_why_reads_the_rules() -> None:
    imports = "import sys, paddock.cli.main, paddock.cli.names, paddock.cli.commands.validate"
    program = f"{imports}; print('paddock.fleet.diagnosis.table' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_each_cause_can_be_found() -> None:
    looked_for = {name for name, _ in LOOKING}
    assert sorted(every().keys() - looked_for - {entry.id for entry in WORDS}) == []
    assert sorted(looked_for - every().keys()) == []


@pytest.mark.parametrize("entry", ENTRIES, ids=[f"{number}-{each.id}" for number, each in enumerate(ENTRIES)])
def test_texts_name_only_what_their_matcher_gives(entry: object) -> None:
    found = next(each for each in ENTRIES if each is entry)
    assert sorted(found.placeholders - found.offered) == []
    assert found.title
    assert found.fix
    assert found.cause != found.title, "said twice"
    assert not found.within or found.reasons, "`within` narrows reasons"
