"""No field of Providers, sets, clones, snapshots, migrations and policies is accepted in silence.

Controllers live with documents that say everything, and read them through records. What no record tells is named by a warning, refused
whole, or only kept; a field that is declared tomorrow is in the documents by itself, and somebody has to read it.
"""

import copy
from collections.abc import Mapping
from pathlib import Path

import pytest

from paddock.base.jsondata import Data
from paddock.dialects.virtrigaud.kinds.vmsnapshot import RetentionPolicy
from paddock.dialects.virtrigaud.plan import unread
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.coroutines import timeless
from tests.kit.declarations import documents
from tests.unit.dialects.test_every_field import is_field
from tests.unit.dialects.virtrigaud.controllers.fieldreads import FieldReads, general, reading
from tests.unit.dialects.virtrigaud.controllers.lives import LIVES
from tests.unit.kubevirt.controllers.providerpods import services_are_here

_USED = services_are_here

GROUP = "infra.virtrigaud.io"
# Blocks that a condition or a warning names, whatever they say.
WHOLE: Mapping[str, tuple[str, ...]] = {
    "VMClone": ("spec.customization.sysprep",),
    "VMMigration": ("spec.target.imageRef",),
    "VMSnapshot": ("spec.snapshotConfig.encryption",),
    "VMSet": ("spec.volumeClaimTemplates", "spec.persistentVolumeClaimRetentionPolicy"),
}
# The machines of a set are VirtualMachines, with a walk of their own (tests/unit/drivers/test_every_field.py).
ELSEWHERE: Mapping[str, tuple[str, ...]] = {"VMSet": ("spec.template.spec",)}


def warned(*bodies: Data) -> set[str]:
    """The fields that warnings name."""
    found = [each for body in bodies for each in admission.admit(copy.deepcopy(dict(body)), AdmissionSettings()).findings]
    return {general(each.path) for each in found}


def silent(kind: str, reads: FieldReads, *bodies: Data) -> list[str]:
    """The fields of a kind that nobody reads, names, refuses or is known to keep."""
    declared = catalog.find(GROUP, kind)
    assert declared is not None
    spoken = reads.of(kind) | warned(*bodies)
    tables = (*WHOLE.get(kind, ()), *ELSEWHERE.get(kind, ()), *unread.STORED.get(kind, {}))
    # What can only say one thing says nothing.
    places = [each for each in documents.places(declared) if is_field(each) and len(each.shape.field.enum or ()) != 1]
    fields = dict.fromkeys(general(each.path) for each in places)
    return [each for each in fields if not any(unread.is_below(found, (each,)) for found in spoken) and not unread.is_below(each, tables)]


def unnamed(kind: str, reads: FieldReads, *bodies: Data) -> list[str]:
    """The blocks that are passed over whole, and that no warning and no condition names."""
    texts = reads.conditions(kind)
    named = warned(*bodies)
    return [each for each in WHOLE.get(kind, ()) if each not in named and not any(each.removeprefix("spec.") in text for text in texts)]


@pytest.mark.spec("virtrigaud", 170)
@pytest.mark.parametrize("kind", LIVES)
@timeless
async def test_no_field_is_silent(kind: str, tmp_path: Path) -> None:
    with reading(kind) as reads:
        bodies = await LIVES[kind](tmp_path)
    assert silent(kind, reads, *bodies) == []
    assert unnamed(kind, reads, *bodies) == []


@timeless
async def test_a_field_that_nobody_reads_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that never looks whether snapshots go with their machine: the walk names the field."""
    monkeypatch.setattr(records, "policy", lambda snapshot: RetentionPolicy())
    with reading("VMSnapshot") as reads:
        bodies = await LIVES["VMSnapshot"](tmp_path)
    assert "spec.retentionPolicy.deleteOnVMDelete" in silent("VMSnapshot", reads, *bodies)
