"""A task's end is noted in the task, not in a callback, wherever others wait for the task.

`await` on a task that has ended does not turn the event loop. Between the end of a task and its callbacks there is a turn. Whoever comes in
it, finds the task still noted, waits for it, and looks again, goes round for ever, and the callback never runs.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def waits(node: ast.AST) -> set[str]:
    """The attributes of `self` that are awaited below a node, as they are or shielded."""
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Await):
            value = each.value
            if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("shield"):
                value = value.args[0]
            if isinstance(value, ast.Attribute):
                found.add(value.attr)
    return found


def forgets(function: ast.AST, name: str) -> bool:
    """Return whether a function takes a task off its attribute."""
    return any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Constant)
        and each.value.value is None
        and any(isinstance(target, ast.Attribute) and target.attr == name for target in each.targets)
        for each in ast.walk(function)
    )


def callbacks(made: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The attributes with a task that has a callback of the same object, each with the callback's name."""
    for each in ast.walk(made):
        if (
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == "add_done_callback"
            and isinstance(each.func.value, ast.Attribute)
            and isinstance(each.args[0], ast.Attribute)
        ):
            yield each.func.value.attr, each.args[0].attr


def problems(source: str) -> list[str]:
    """What is wrong in a module."""
    found = []
    for made in (each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.ClassDef)):
        functions = {each.name: each for each in ast.walk(made) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        for task, callback in callbacks(made):
            if callback in functions and forgets(functions[callback], task) and task in waits(made):
                found.append(f"{made.name}.{callback} forgets {task}, which others wait for: forget it in the task")
        for loop in (each for each in ast.walk(made) if isinstance(each, ast.While)):
            for task in sorted(waits(loop)):
                runs = [each for each in functions.values() if isinstance(each, ast.AsyncFunctionDef) and forgets(each, task)]
                if not runs:
                    found.append(f"{made.name} waits in a loop for {task}, which no task forgets at its end")
    return found


def test_no_wait_for_a_task_goes_round() -> None:
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    found = {str(path.relative_to(SOURCE)): problems(text) for path, text in texts.items() if "await" in text}
    assert {path: each for path, each in found.items() if each} == {}


_POOL = """
class Pool:
    async def acquire(self):
        while True:
            if self._connecting is None:
                self._connecting = create_task(self._connect())
                {callback}
            await {wait}

    def _connected(self, task):
        self._connecting = None

    async def _connect(self):
        {end}
"""


@pytest.mark.parametrize(
    ("callback", "wait", "end", "fine"),
    [
        ("self._connecting.add_done_callback(self._connected)", "asyncio.shield(self._connecting)", "pass", False),
        ("self._connecting.add_done_callback(self._connected)", "self._connecting", "pass", False),
        ("pass", "self._connecting", "pass", False),
        ("pass", "asyncio.shield(self._connecting)", "self._connecting = None", True),
        ("pass", "self._changed.wait()", "pass", True),
    ],
)
def test_the_check_sees_what_it_should(callback: str, wait: str, end: str, fine: bool) -> None:
    assert (problems(_POOL.format(callback=callback, wait=wait, end=end)) == []) is fine
