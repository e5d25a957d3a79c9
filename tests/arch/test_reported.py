"""The reference of events, conditions, metrics and settings is whole: what the code writes or reads is declared, and nothing else."""

import ast
import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from paddock.app.operator.options import SETTINGS
from paddock.base import ownnames, reasons, variables
from paddock.kubevirt.kinds import extendedsources as kubermatic
from paddock.kubevirt.translate.limits import Code
from tests.arch.test_reasons import literals, spelled, trees
from tests.arch.trees import PACKAGE
from tests.kit.reported import declared_conditions, declared_events
from tools.referencepages import metrics, reported, settings

ROOT = Path(__file__).parents[2]
# Calls that write an event, and the words among their arguments that are no reasons.
WRITERS = ("_once", "_tell", "tell", "EventMessage", "InstanceEvent", "TransferEvent")
TYPES = ("Normal", "Warning")
# Reasons that the code puts together.
COMPOSED = {
    *(
        f"{way}{state}"
        for way, state in itertools.product(("Import", "Clone", "Upload"), ("Failed", "InProgress", "Scheduled", "Succeeded"))
    ),
    "ExternalScheduled",
    *map("".join, itertools.product(("PostStart", "PreStop"), ("Failed", "Running", "Succeeded"))),
}
# Types of Kubernetes' own kinds, then words in the place of a type that are none: a reason, and the values of a status.
FOREIGN_TYPES = {
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
    "NetworkConfigurationNotFound",
    *("True", "False", "Unknown"),
}
# Variables that every program has, then those that Paddock sets for other programs.
UNDECLARED_VARIABLES = {"HOME", "PATH", "KUBERNETES_EXEC_INFO", "TZ"}
# The scheme of the server's address is a part of their names.
COMPOSED_VARIABLES = {"HTTP_PROXY", "HTTPS_PROXY"}


@cache
def sources() -> str:
    """Return the code of the package without the declarations."""
    return "\n".join(path.read_text() for path in sorted(PACKAGE.parent.rglob("*.py")) if path.name not in ("variables.py", "ownnames.py"))


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of the code that writes events and conditions, with the name of its function."""
    for node in (node for tree in trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""), node


@cache
def told() -> frozenset[str]:
    """Return every reason that a call spells which writes an event."""
    found = (literals(each) for name, call in calls() if name in WRITERS for each in call.args)
    return frozenset(code for codes in found for code in codes if code not in TYPES)


@cache
def set_conditions() -> frozenset[str]:
    """Return every type that a call spells which makes a condition."""
    found: set[str] = set()
    for name, call in calls():
        if name in ("Condition", "DataCondition", "ConditionText", "_condition", "_false", "_said", "false", "true"):
            given = [each.value for each in call.keywords if each.arg == "type"] or call.args[:1]
            found |= {code for each in given for code in literals(each)}
    # A constant is found by its name, which a reason of another module may share.
    return frozenset(found - FOREIGN_TYPES - {reason for _, reason in declared_events()})


def test_every_event_that_the_code_writes_is_declared() -> None:
    declared = {reason for _, reason in declared_events()}
    assert sorted(told() - declared) == []
    assert len(told()) > 80, "the writers are found"


def test_every_limit_of_machines_is_declared() -> None:
    declared = {reason for _, reason in declared_events()}
    assert sorted({each.reason for each in Code} - declared) == []


def test_every_declared_event_is_written() -> None:
    given = {reason for each in reported.events().values() for reason in (*each.normal, *each.warning)}
    assert sorted(given - spelled() - COMPOSED - reasons.codes() - {each.reason for each in Code}) == []


def test_every_condition_that_the_code_sets_is_declared_and_the_other_way_round() -> None:
    assert sorted(set_conditions() - declared_conditions()) == []
    # The last one is spelled among the words of its dialect.
    assert sorted(declared_conditions() - spelled() - {"HotVCPUChange", "HotMemoryChange", kubermatic.RESOLVED}) == []
    assert len(set_conditions()) > 20, "the calls are found"


def test_every_reason_code_has_a_meaning_on_the_page() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()
    assert [code for code in reasons.codes() if f"| `{code}` |" not in page] == []


def test_every_metric_is_on_its_page() -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text()
    assert [name for name in metrics.names() if f"| `{name}` |" not in page] == []


def test_a_metric_without_a_constant_name_is_no_declaration() -> None:
    module = PACKAGE / "base" / "clock.py"
    function = "def make(metrics, name):\n    metrics.counter(name, 'text')\n"
    with pytest.raises(metrics.NoDeclaration, match="name is no constant"):
        list(metrics._of_module(module, ast.parse(function)))


def read_variables() -> frozenset[str]:
    """Return every environment variable that the code reads by its name, or keeps in a constant to read it."""
    text = sources()
    found = set(re.findall(r"environ(?:ment)?(?:\.get\(|\[)\"([A-Za-z_0-9]+)\"", text))
    found |= set(re.findall(r"variables\.get\(\"([A-Z_0-9]+)\"", text))
    found |= set(re.findall(r"\"((?:PADDOCK|PROVIDER|PVE|LIBVIRT|VSPHERE|TLS|VIRTRIGAUD_PROVIDER)_[A-Z_0-9]*[A-Z0-9])\"", text))
    return frozenset(each for each in found if each.isupper())


def declared_variables() -> frozenset[str]:
    """Return the declared environment variables."""
    groups = (variables.COMMANDS, variables.SERVER, variables.CLUSTER, variables.PROVIDER, variables.DRIVERS)
    return frozenset(each.name for group in groups for each in group)


def test_every_environment_variable_is_declared_and_read() -> None:
    known = declared_variables() | {each.variable for each in SETTINGS}
    assert sorted(read_variables() - known - UNDECLARED_VARIABLES) == []
    code = sources()
    constants = {name for name, each in vars(variables).items() if isinstance(each, variables.Variable) and f"variables.{name}" in code}
    used = {getattr(variables, name).name for name in constants}
    spelled_out = {each for each in declared_variables() if f'"{each}"' in code or f'"{each.lower()}"' in code}
    assert sorted(declared_variables() - used - spelled_out - COMPOSED_VARIABLES) == []


def test_every_name_of_our_own_is_declared() -> None:
    found = re.findall(r"[\"'](?:[a-z-]+\.)*(paddock\.dev/[A-Za-z.-]+)[\"']", sources())
    assert found == [], "declare it in base/ownnames.py, and use the declaration"
    assert len({each.name for each in ownnames.ALL}) == len(ownnames.ALL)
    assert {each for each in vars(ownnames).values() if isinstance(each, ownnames.OwnName)} == set(ownnames.ALL)


def test_every_setting_is_on_its_page() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text()
    names = [each.name for each in ownnames.ALL] + sorted(declared_variables()) + [each.variable for each in SETTINGS if each.variable]
    assert [name for name in names if f"| `{name}` |" not in page] == []
    assert [name for name in settings.PROGRAMS if f"## Options of paddock {name}\n" not in page] == []
