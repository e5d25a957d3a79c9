"""The adapters of the dialects' machines, and what a dialect without one gets."""

from types import SimpleNamespace

import pytest

from paddock.fleet import kinds
from paddock.kubernetes import catalog
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.adapters import ChangeRefused, DiskWish, MachineAdapter, NicWish
from paddock.kubevirt.plan.diagnosis import kinddiagnosis

BOX = SimpleNamespace(data={}, vm=None, name="web", namespace="default", dialect="sixth")


def test_every_front_has_an_adapter_of_its_own() -> None:
    for front in kinds.FRONTS:
        assert type(front.adapter) is not MachineAdapter, front.dialect
    assert type(kinds.VM.adapter) is type(kinds.VMI.adapter) is MachineAdapter
    assert [*adapters.every()] == [adapters.of(each.name) for each in catalog.every_dialect() if each.adapter]


def test_a_dialect_without_an_adapter_refuses_changes_in_words() -> None:
    adapter = adapters.of("sixth")
    with pytest.raises(ChangeRefused, match="sixth has no field for it"):
        adapter.add_disk(BOX, {}, DiskWish(name="data", size="1Gi"), ())
    with pytest.raises(ChangeRefused, match="cannot change a disk of"):
        adapter.grow_disk(BOX, {}, DiskWish(name="data", size="1Gi"), ())
    with pytest.raises(ChangeRefused, match="cannot add an interface to"):
        adapter.add_nic(BOX, {}, NicWish(name="lan", network="lan"))
    assert adapter.below({}) is None
    assert not adapter.sizes


def test_kinds_that_a_diagnosis_knows_are_declared() -> None:
    known = {kind for kind, _ in kinddiagnosis.items()}
    assert known <= {*catalog.known()}
    assert {(each.group, each.kind) for each in kinds.FRONTS} <= known
    for kind, each in kinddiagnosis.items():
        declared = catalog.find(*kind)
        assert declared is not None
        assert declared.namespaced is not each.is_wide
    assert kinddiagnosis.of(("sixth.example", "Box")).verdict is None


def test_kinds_that_an_adapter_names_are_declared() -> None:
    for adapter in adapters.every():
        around = adapter.provider_kinds
        named = [adapter.snapshot_kind, adapter.clone_kind, adapter.network_kind, adapter.image_kind, *adapter.carried]
        named += [around.providers, around.images, around.networks, around.sets, around.migrations] if around is not None else []
        for each in filter(None, named):
            declared = catalog.find(each.group, each.kind)
            assert declared is not None
            assert (declared.storage_version, declared.plural, declared.namespaced) == (each.version, each.plural, each.namespaced)
