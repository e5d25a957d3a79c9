"""A user's text in a manifest stays a value: any text in any field is refused, or leaves the command line's shape alone."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.base.errors import PaddockError
from paddock.kubernetes.admission import admit
from tests.unit.engine.machine.argv.parsing import Parsed, parse, shape
from tests.unit.engine.machine.argv.test_injection import NASTY, TEXT
from tests.unit.kubevirt.translate.machines import changed, instance, translated
from tests.unit.tools.kubevirtsupport.test_support import GATES
from tools.kubevirtsupport import table

Place = tuple[str | int, ...]


def spec_of(given: Any) -> dict[str, Any]:
    return changed({"domain": {"devices": {}, "memory": {"guest": "1Gi", "maxGuest": "1Gi"}}}, given)


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the places of texts."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    elif isinstance(value, str):
        yield path


def with_text(spec: dict[str, Any], path: Place, text: str) -> dict[str, Any]:
    found: Any = copy.deepcopy(spec)
    place = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = text
    return dict(found)


ROWS = [row for row in table.ROWS if row.given]
PLACES = sorted({(number, path) for number, row in enumerate(ROWS) for path in leaves(spec_of(row.given))}, key=str)


def line(number: int, spec: dict[str, Any]) -> Parsed | None:
    """Return the line that QEMU would read. None: it was refused, by admission or with a name, before QEMU was tried."""
    row = ROWS[number]
    machine = {"runStrategy": "Halted", "template": {"spec": spec}}
    raw = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "vm", "namespace": "ns"}, "spec": machine}
    if not admit(raw, GATES).accepted:
        return None
    found = translated(instance(spec), kvm=row.kvm, host=row.host)
    if not found.result.startable:
        return None
    try:
        return parse(found.command.argv)
    except PaddockError:
        return None


def hold(number: int, path: Place, text: str) -> bool:
    """Return whether the text was accepted as a value."""
    plain = spec_of(ROWS[number].given)
    found = line(number, with_text(plain, path, text))
    if found is None or not text:
        return found is not None
    # A name that nothing else has may mean something of its own, so another such name is what to compare with.
    other = line(number, with_text(plain, path, "other")) or line(number, plain)
    assert other is not None
    assert shape(found) == shape(other)
    return True


@pytest.mark.spec("kubevirt", 106)
def test_every_text_of_a_machine() -> None:
    """Each text of each example in turn, with several of the worst values."""
    taken = set()
    for turn, (number, path) in enumerate(PLACES):
        for step in range(5):
            if hold(number, path, NASTY[(turn * 5 + step) % len(NASTY)]):
                taken.add(path)
    # The test is worth something only if such texts get through to QEMU somewhere.
    assert {"kernelArgs", "manufacturer", "userData", "asset"} <= {path[-1] for path in taken}


@given(st.integers(0, len(PLACES) - 1), TEXT)
@settings(deadline=None)
def test_any_text_anywhere(place: int, text: str) -> None:
    hold(*PLACES[place], text)
