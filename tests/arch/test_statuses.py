"""A controller writes a status through `runtime.statuses.StatusWriter` alone: a request of its own knows no revision and no expectation."""

import ast
from collections.abc import Iterator

import pytest

from tests.arch.trees import PACKAGE, controllers, trees_of

WRITER = "kubernetes/runtime/statuses.py"
ALLOWED = {
    # One JSON patch brings an instance up to its machine: spec, annotations and the revision in its status change together or not at all.
    "kubevirt/controllers/virtualmachine/controller.py": ["a JSON patch of /status/virtualMachineRevisionName"],
}


def writes(module: ast.Module) -> list[str]:
    """Return the writes of a status in a module."""
    return [each for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for each in _in(node)]


def _in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    documents = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AnnAssign) and _has_status(node.value, set())
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/status"):
            yield f"a JSON patch of {node.value}"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = [*node.args, *(each.value for each in node.keywords)]
        if name in ("WriteOptions", "path") and any(_is_status(each) for each in values):
            yield "a request for the subresource status"
        if name in ("merge_patch", "_patch") and any(_has_status(each, documents) for each in values):
            yield "a merge patch of the status"


def _is_status(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == "status"


def _has_status(node: ast.AST | None, documents: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in documents
    return isinstance(node, ast.Dict) and any(key is not None and _is_status(key) for key in node.keys)


def test_controllers_write_statuses_through_the_writer() -> None:
    found = {}
    for path, module in (*controllers(), *trees_of("kubernetes/runtime")):
        name = path.relative_to(PACKAGE).as_posix()
        if name != WRITER and (each := writes(module)):
            found[name] = each
    assert found == ALLOWED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('client.patch(KIND, key, merge_patch({"status": status}))', ["a merge patch of the status"]),
        ('document = {"metadata": m, "status": s}; client.patch(KIND, key, merge_patch(document))', ["a merge patch of the status"]),
        ('client.patch(KIND, key, p, WriteOptions(subresource="status"))', ["a request for the subresource status"]),
        ('client.request("PUT", KIND.path(namespace, name, "status"))', ["a request for the subresource status"]),
        ('client.patch(KIND, key, json_patch([{"path": "/status/phase"}]))', ["a JSON patch of /status/phase"]),
        ('said = {"type": "Ready", "status": "True"}; writer.change(seen, {"conditions": [said]})', []),
        ('client.patch(KIND, key, merge_patch({"metadata": metadata}))', []),
    ],
)
def test_the_rule_bites(body: str, expected: list[str]) -> None:
    assert writes(ast.parse(f"def act():\n    {body}\n")) == expected
