"""Objects are complete after their constructors: controllers are wired by what they are given, not by attributes that are set afterwards.

Records are data, and the code around them fills them in: a structure or dataclass of the same controller, such as what one pass has come
to. Every other object gets what it needs from its constructor. What is not known by then comes through a queue or a listener.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.arch.trees import PACKAGE, controllers

# Attributes that may be set on objects of others, with the reason.
ALLOWED = {
    "check_hostname": "the standard library's SSL context has no parameter for it",
    "verify_mode": "the standard library's SSL context has no parameter for it",
}


_PLANTED = "kubevirt/controllers/storage/planted.py"
Modules = Sequence[tuple[Path, ast.Module]]


def test_no_attribute_is_set_on_an_object_after_its_constructor() -> None:
    found = list(_assignments(controllers()))
    assert [each for each in found if each.rpartition(".")[2] not in ALLOWED] == []
    assert ALLOWED.keys() - {each.rpartition(".")[2] for each in found} == set(), "an exception that nothing needs"


def test_no_attribute_starts_as_a_placeholder() -> None:
    assert list(_placeholders(controllers())) == []


def test_the_rules_bite() -> None:
    code = """
class Pass(msgspec.Struct):
    error: str = ""

@dataclass(frozen=True)
class Parts:
    queue: Queue

def wire(observer, look):
    look.error = "gone"
    observer.queue, observer.users = queue, users

class Observer:
    def __init__(self):
        self.users = lambda claim: ""
"""
    planted = [(PACKAGE / "kubevirt" / "controllers" / "storage" / "planted.py", ast.parse(code))]
    assert list(_assignments(planted)) == [f"{_PLANTED}:11 observer.queue", f"{_PLANTED}:11 observer.users"]
    assert list(_placeholders(planted)) == [f"{_PLANTED}:15"]


def _assignments(modules: Modules) -> Iterator[str]:
    """Assignments to attributes of an object that is neither `self` nor a record of the same controller, by file and line."""
    fields = {_controller(path): set[str]() for path, _ in modules}
    for path, tree in modules:
        fields[_controller(path)] |= _record_fields(tree)
    for path, tree in modules:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
                continue
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own and node.attr not in fields[_controller(path)]:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)}"


def _controller(path: Path) -> tuple[str, ...]:
    """The controller that a module belongs to: a folder of `kubevirt/controllers`, or the controllers of a dialect."""
    return path.relative_to(PACKAGE).parts[:3]


def _placeholders(modules: Modules) -> Iterator[str]:
    for path, tree in modules:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda) and _is_attribute(node):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


def _record_fields(tree: ast.Module) -> set[str]:
    records = (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and _is_mutable_record(each))
    return {name for each in records for name in _fields(each)}


def _is_mutable_record(each: ast.ClassDef) -> bool:
    made = [ast.unparse(node) for node in (*each.bases, *each.decorator_list, *(word for word in each.keywords if word.arg == "frozen"))]
    return any("Struct" in text or "dataclass" in text for text in made) and not any("frozen=True" in text for text in made)


def _fields(record: ast.ClassDef) -> set[str]:
    return {each.target.id for each in record.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}


def _is_attribute(node: ast.Assign | ast.AnnAssign) -> bool:
    return any(isinstance(each, ast.Attribute) for each in (node.targets if isinstance(node, ast.Assign) else [node.target]))
