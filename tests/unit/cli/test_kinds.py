"""Kinds and fields as users call them."""

import pytest

from paddock.cli.kinds import KindNotFound, descend, members, resolve

# Of Vitistack's own form.
OWN_DISK_FIELDS = ("sizeGB", "type", "boot", "device", "encrypted", "iops", "throughput")


@pytest.mark.parametrize(
    ("text", "dialect", "group", "kind", "path"),
    [
        ("Machine", None, "vitistack.io", "Machine", ""),
        ("machines.spec", None, "vitistack.io", "Machine", "spec"),
        ("m", None, "vitistack.io", "Machine", ""),
        ("VIRTUALMACHINE", "stakater", "infrastructure.stakater.com", "VirtualMachine", ""),
        ("vm.kubevirt.io", None, "kubevirt.io", "VirtualMachine", ""),
        ("virtualmachines.infra.virtrigaud.io.spec.disks[0].sizeGiB", None, "infra.virtrigaud.io", "VirtualMachine", "spec.disks.sizeGiB"),
        ("vm.spec.template", "kubevirt", "kubevirt.io", "VirtualMachine", "spec.template"),
        ("vmpool.spec", None, "pool.kubevirt.io", "VirtualMachinePool", "spec"),
        ("secret.data", None, "", "Secret", "data"),
        ("virtualmachinesnapshot.snapshot.kubevirt.io.spec", None, "snapshot.kubevirt.io", "VirtualMachineSnapshot", "spec"),
    ],
)
def test_resolve(text: str, dialect: str | None, group: str, kind: str, path: str) -> None:
    asked = resolve(text, dialect)
    assert (asked.kind.group, asked.kind.kind, ".".join(asked.path)) == (group, kind, path)


@pytest.mark.parametrize("text", ["virtualmachine.spec", "vm.spec"])
def test_a_name_of_several_dialects_is_kubevirts_as_with_kubectl(text: str) -> None:
    asked = resolve(text, None)
    assert asked.kind.dialect == "kubevirt"
    assert "infra.virtrigaud.io" in {kind.group for kind in asked.others}


@pytest.mark.parametrize(
    ("text", "dialect", "said"),
    [
        ("Machin", None, 'no kind is called "Machin"; did you mean "Machine"?'),
        ("Machine", "stakater", 'no kind of stakater is called "Machine"'),
        ("qqqqqqqq", None, 'no kind is called "qqqqqqqq"; known kinds: CDI, '),
    ],
)
def test_not_found(text: str, dialect: str | None, said: str) -> None:
    with pytest.raises(KindNotFound) as caught:
        resolve(text, dialect)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "type_name", "names"),
    [
        ("Machine.spec.resources.cpu", "ObjectShape", ["cores", "threads", "sockets"]),
        ("Machine.spec.disks", "ListShape", ["name", "size", "storageClass", "accessMode", "volumeMode", *OWN_DISK_FIELDS]),
        ("Machine.spec.disks.size", "QuantityShape", []),
        ("Machine.metadata.labels", "MapShape", []),
        ("Machine.metadata.labels.some-key", "StringShape", []),
    ],
)
def test_descend(text: str, type_name: str, names: list[str]) -> None:
    place, _ = descend(resolve(text, None))
    assert type(place).__name__ == type_name
    assert list(members(place)) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Machine.spec.disk", 'Machine.spec has no field "disk"; did you mean "disks"?'),
        (
            "Machine.spec.disks.qqqqqqqq",
            'Machine.spec.disks has no field "qqqqqqqq"; it has name, size, storageClass, accessMode, volumeMode',
        ),
        ("Machine.spec.template.x", "spec.template has no fields that are declared"),
    ],
)
def test_no_such_field(text: str, said: str) -> None:
    with pytest.raises(KindNotFound) as caught:
        descend(resolve(text, None))
    assert str(caught.value).startswith(said)
