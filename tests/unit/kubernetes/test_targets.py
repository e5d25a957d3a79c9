"""The targets of kinds by their names."""

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.client.target import declared
from paddock.kubernetes.schema.kind import Kind
from paddock.kubernetes.targets import kind_target


@pytest.mark.parametrize("kind", catalog.every(), ids=lambda kind: f"{kind.kind}.{kind.group}")
def test_a_declared_kind_has_the_target_of_its_declaration(kind: Kind) -> None:
    assert kind_target(kind.group, kind.kind) == declared(kind, dict)


def test_a_kind_that_no_dialect_declares_has_a_target() -> None:
    assert kind_target("", "Node").path(name="n1") == "/api/v1/nodes/n1"


def test_another_version_than_the_stored_one_can_be_asked_for() -> None:
    exports = kind_target("export.kubevirt.io", "VirtualMachineExport", "v1beta1")
    assert exports.path("default") == "/apis/export.kubevirt.io/v1beta1/namespaces/default/virtualmachineexports"


def test_a_kind_that_nobody_knows_is_an_error_of_the_program() -> None:
    with pytest.raises(KeyError):
        kind_target("example.com", "Nothing")
