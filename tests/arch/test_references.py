"""Everything in the package has a user: a name that only tests call, or nothing at all, goes (`tools/unreferenced.py`)."""

import ast

from tests.arch.trees import PACKAGE, every_tree
from tools.unreferenced import ROOT, entry_points, module_name, parsed, unreferenced

# What stays all the same, with the reason.
ALLOWED = {
    "paddock.app.envtest": "a plugin that the pytest of others loads",
    "paddock.app.envtest:kubevirt": "a fixture for tests of others",
    "paddock.app.envtest:pytest_addoption": "a hook that pytest calls",
    "paddock.fleet.diagnosis.table:FOREIGN": "a part of the table of rules, which the tests of the reasons read",
    "paddock.app.programs.programs:EmbeddedPrograms.pids": "what tests end programs by",
    "paddock.engine.machine.clones:awaken": "warm clones have no command yet",
    "paddock.engine.machine.clones:cold": "warm clones have no command yet",
    "paddock.engine.machine.clones:load": "warm clones have no command yet",
    "paddock.engine.machine.machine:QemuMachine.commit_disk": "merging layers of a running machine has no command yet",
    "paddock.kubevirt.translate.config:MachineTranslation.startable": "what the tests of every field ask",
}


def test_everything_has_a_user() -> None:
    package = {module_name(path, PACKAGE.parent): tree for path, tree in every_tree()}
    tools = [parsed(path) for path in sorted((ROOT / "tools").rglob("*.py"))]
    found = {str(each) for each in unreferenced(package, tools, entry_points(ROOT))}
    assert found - ALLOWED.keys() == set(), "nothing but tests refers to these"
    assert ALLOWED.keys() - found == set(), "an exception that nothing needs"


def test_the_rule_bites() -> None:
    used = """
from paddock.b import called, Kept
from paddock import c
def start() -> "Quoted":
    c.read(c.WORDS); Kept().method(); getattr(c, "looked_up")
    return load("paddock.d:entry")
"""
    unused = """
class Kept:
    def method(self): self.own()
    def own(self): ...
    def forgotten(self): self.own()
def called(): ...
def recursive(): recursive()
LIMIT = 3
"""
    package = {
        "paddock.a": used,
        "paddock.b": unused,
        "paddock.c": "def read(): ...\ndef looked_up(): ...\ndef left(): ...\nWORDS = _BASE = 1\n",
        "paddock.d": "def entry(): ...\n",
        "paddock.e": "@to_kubevirt.register\ndef _machine(): ...\n",
    }
    found = [str(each) for each in unreferenced({name: ast.parse(text) for name, text in package.items()}, [], ["paddock.a:start"])]
    left = [
        "paddock.b:Kept.forgotten",
        "paddock.b:recursive",
        "paddock.b:LIMIT",
        "paddock.c:left",
        "paddock.c:_BASE",
    ]
    assert found == [*left, "paddock.e"]
