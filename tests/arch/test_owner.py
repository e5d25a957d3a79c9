"""A machine's owner is complete after its constructor: others call its methods, and nothing is made only for the making."""

import ast
from collections.abc import Iterator

from tests.arch.trees import PACKAGE, trees_of

MACHINE = PACKAGE / "engine" / "machine"
_CHANGES = ("append", "extend", "insert", "add", "update", "setdefault", "pop", "remove", "clear")


def test_nobody_writes_into_an_owner() -> None:
    assert [each for name, tree in _modules() for each in _writes(name, tree, _attributes())] == []


def test_nothing_is_made_for_its_side_effect() -> None:
    assert [each for name, tree in _modules() for each in _dropped(name, tree)] == []


def test_the_rules_bite() -> None:
    code = """
def wire(owner, self, beside):
    owner.busy += 1
    self._owner.qmp, beside.owner = None, owner
    owner.record.pop("share")
    owner.timers.clear()
    owner.observe(detail="")
    machine.observed.append(1)
    owner.run.qmp = owner.files.record.stop = None
    Liveness(owner)
"""
    tree = ast.parse(code)
    written = sorted(_writes("planted", tree, _attributes()))
    assert written == [
        "planted:3 owner.busy",
        "planted:4 self._owner.qmp",
        "planted:5 owner.record.pop",
        "planted:9 owner.files.record.stop",
        "planted:9 owner.run.qmp",
    ]
    assert list(_dropped("planted", tree)) == ["planted:10 Liveness"]


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path, tree in trees_of("engine/machine"):
        yield path.relative_to(MACHINE).as_posix(), tree


def _attributes() -> frozenset[str]:
    """The attributes of an owner whose value is data, and no object with methods of its own."""
    return frozenset(("config", "started", "observed", "record", "busy", "run", "parts"))


def _writes(name: str, tree: ast.Module, data: frozenset[str]) -> Iterator[str]:
    """Assignments to attributes of an owner and of what it consists of, and changes of the collections that it has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_of_owner(node.value) and isinstance(node.ctx, ast.Store | ast.Del):
            yield f"{name}:{node.lineno} {ast.unparse(node)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            changed = node.func.value
            if isinstance(changed, ast.Attribute) and changed.attr in data and _is_owner(changed.value):
                yield f"{name}:{node.lineno} {ast.unparse(node.func)}"


def _is_owner(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "owner") or (isinstance(node, ast.Attribute) and node.attr in ("owner", "_owner"))


def _is_of_owner(node: ast.expr) -> bool:
    return _is_owner(node) or (isinstance(node, ast.Attribute) and _is_of_owner(node.value))


def _dropped(name: str, tree: ast.Module) -> Iterator[str]:
    """Calls of classes whose result nobody keeps."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            word = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            if word[:1].isupper():
                yield f"{name}:{node.lineno} {word}"
