"""The table of kinds against the declarations, and the words that name them."""

import pytest

from paddock.fleet import kinds
from paddock.fleet.kinds import MACHINES, VM, VMI, MachineKind, NoMachineKind
from paddock.kubernetes import catalog
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD, VITISTACK


@pytest.mark.parametrize("kind", MACHINES, ids=lambda each: each.qualified)
def test_the_table_agrees_with_the_declarations(kind: MachineKind) -> None:
    declared = catalog.find(kind.group, kind.kind)
    assert declared is not None
    assert (declared.plural, declared.storage_version, declared.dialect) == (kind.plural, kind.version, kind.dialect)
    shared = {"vm"} if kind is VIRTRIGAUD else set()
    assert set(declared.short_names) - shared <= set(kind.words)


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("vm", (VM,)),
        ("VirtualMachine", (STAKATER, VIRTRIGAUD, VM)),
        ("virtualmachines.infra.virtrigaud.io", (VIRTRIGAUD,)),
        ("vm.kubevirt.io", (VM,)),
        ("vmis", (VMI,)),
        ("machine", (VITISTACK,)),
        ("stakater", (STAKATER,)),
    ],
)
def test_words(word: str, found: tuple[MachineKind, ...]) -> None:
    assert kinds.called(word) == found


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(NoMachineKind, match='did you mean "stakater"'):
        kinds.called("stakatr")


def test_the_words_are_unique() -> None:
    words = [word for kind in MACHINES for word in kind.words]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    "data",
    [
        {"status": {"conditions": [{"type": "DataSourceResolved", "status": "True"}]}},
        {"metadata": {"annotations": {"kubevirt.io/immediate-data-volume-creation": "false"}}},
        {"spec": {"dataVolumeTemplates": [{"metadata": {"annotations": {"virtualization.k8c.io/data-source": "a/b"}}}]}},
    ],
)
def test_kubermatics_machines_are_recognized(data: dict[str, object]) -> None:
    assert kinds.dialect_of(VM, data) == "kubermatic"
    assert kinds.dialect_of(STAKATER, data) == "stakater"


def test_other_machines_are_kubevirts() -> None:
    assert kinds.dialect_of(VM, {"metadata": {"annotations": {"a": "b"}}, "spec": {"dataVolumeTemplates": [{}]}}) == "kubevirt"
