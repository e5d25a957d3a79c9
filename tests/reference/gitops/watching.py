"""The view of a GitOps tool: `kubectl diff` of the applied objects, over and over. The same script serves any API server."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.reference.client import Json, Kubectl

_PAUSE_SECONDS = 0.5


def difference(kubectl: Kubectl, file: Path) -> str:
    """Return the changes that an apply of the file would make now; "" for none."""
    ran = kubectl.run("diff", "-f", str(file))
    if ran.code > 1:
        raise AssertionError(f"kubectl diff -f {file}: exit {ran.code}\n{ran.errors}")
    return ran.output


def apply(kubectl: Kubectl, files: Sequence[Path]) -> None:
    """Apply the files."""
    for file in files:
        kubectl.ok("apply", "-f", str(file))


# What changes with every status, too: not all kinds have theirs apart.
_MOVING = ("resourceVersion", "generation", "managedFields")


def contents(kubectl: Kubectl, files: Sequence[Path]) -> dict[str, Json]:
    """The objects of the files, with everything but their status.

    kubectl's own word after an apply, `configured`, only says that it sent a patch: it does so for lists whose entries have defaults.
    """
    found = {}
    for file in files:
        said = json.loads(kubectl.ok("get", "-f", str(file), "-o", "json"))
        for each in said["items"] if said["kind"] == "List" else [said]:
            metadata = {name: value for name, value in each["metadata"].items() if name not in _MOVING}
            rest = {name: value for name, value in each.items() if name != "status"}
            found[f"{each['kind']}/{metadata['name']}"] = {**rest, "metadata": metadata}
    return found


def stays_as_applied(kubectl: Kubectl, files: Sequence[Path], is_over: Callable[[], bool], seconds: float) -> None:
    """Look at what was applied until the life of its objects is over, or as far as a test goes; a difference fails the test."""
    looks, end = 0, time.monotonic() + seconds
    while True:
        # Asked before the look, so that the last look is one at the end.
        over = is_over()
        for file in files:
            if found := difference(kubectl, file):
                pytest.fail(f"{file.name} differs from what was applied, at look {looks}:\n{found}")
        looks += 1
        if over:
            return
        if time.monotonic() > end:
            pytest.fail(f"not over within {seconds:g} s, after {looks} looks")
        time.sleep(_PAUSE_SECONDS)
