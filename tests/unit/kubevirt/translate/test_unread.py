"""Every field of an instance is read by somebody, and one that is not is named."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.base.errors import PaddockError
from paddock.kubernetes.schema.finding import format_path
from paddock.kubevirt.kinds.instance import KINDS, VirtualMachineInstance
from paddock.kubevirt.plan.instance.defaults import InstallationDefaults, defaulted
from paddock.kubevirt.translate.limits import Code
from paddock.kubevirt.translate.unread import READ_ELSEWHERE
from tests.kit.declarations import addedfield, documents
from tests.unit.kubevirt.translate.machines import translated

PLACES = [place for place in documents.places(KINDS[0]) if place.path[:1] == ("spec",) and len(place.path) > 1]


def unread(document: dict[str, Any]) -> list[str]:
    """The fields that a translation of the document names as unread."""
    found = msgspec.convert({**document, "metadata": {"name": "vm", "namespace": "ns"}}, VirtualMachineInstance)
    try:
        machine = msgspec.structs.replace(found, spec=defaulted(found.spec, InstallationDefaults()))
        limits = translated(machine).result.limits
    except (PaddockError, ValueError):
        # A text that its declaration takes and the translation refuses.
        return []
    return [format_path(limit.path) for limit in limits if limit.code is Code.FIELD_UNREAD]


def test_no_declared_field_is_unread() -> None:
    """In the least document that has it."""
    assert {field for place in PLACES for field in unread(place.wrap(documents.full(place.shape)))} == set()


def test_what_others_read_is_declared() -> None:
    declared = {".".join(part for part in place.path[1:] if isinstance(part, str)) for place in PLACES}
    assert {field for fields in READ_ELSEWHERE.values() for field in fields} <= declared


@pytest.mark.spec("kubevirt", 7)
def test_a_field_that_nobody_reads_is_a_limit(tmp_path: Path) -> None:
    """In a copy of the program that declares one more field and does nothing with it."""
    script = (
        "from tests.unit.kubevirt.translate.machines import *\n"
        "disks = {'domain.devices.disks': [{'name': 'a', 'disk': {}, 'tint': 'red'}], 'volumes': [{'name': 'a'}]}\n"
        "made = instance({'tint': 'red', 'domain.cpu': {'cores': 2, 'tint': 'red'}, **disks})\n"
        "print(*[limit.message for limit in translated(made).result.limits], sep='\\n')"
    )
    found = addedfield.run(addedfield.copied(tmp_path), "-c", script)
    sentence = Code.FIELD_UNREAD.sentence
    fields = ("spec.domain.cpu.tint", "spec.domain.devices.disks[0].tint", "spec.tint")
    assert sorted(found.stdout.splitlines()) == [f"{field}: {sentence}" for field in fields], found.stderr
