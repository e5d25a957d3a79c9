"""What a request describes, and what is refused of it before anything is done."""

import json
from typing import Any

import msgspec
import pytest

from paddock.contract import payloads as p
from paddock.contract.description import is_ignition
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import description
from paddock_drivers.kubevirt import booting, documents, failures
from paddock_drivers.kubevirt.booting import BootDisk, BootKind
from paddock_drivers.kubevirt.documents import MachineDocuments
from tests.unit.drivers.kubevirt.conftest import HARDWARE, IMAGE, SETTINGS, creation


def built(**change: Any) -> MachineDocuments:
    with failures.mapped():
        given = description.of_create(creation(**change))
        return documents.build(given, booting.fetched(given.image), SETTINGS)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"name": "Web"}, ErrorKind.INVALID_SPEC, 'cannot be called "Web"'),
        ({"name": "a" * 64}, ErrorKind.INVALID_SPEC, "at most 63"),
        ({"name": ""}, ErrorKind.INVALID_SPEC, "cannot be called"),
        ({"hardware": p.ClassPayload(cpu=1)}, ErrorKind.INVALID_SPEC, "has no size"),
        ({"networks": (p.NetworkPayload(name="A b"),)}, ErrorKind.INVALID_SPEC, 'a network cannot be called "A b"'),
        ({"networks": (p.NetworkPayload(name="a"),) * 2}, ErrorKind.INVALID_SPEC, "have the same name"),
        ({"disks": (p.DiskPayload(name="a", size_gib=0),)}, ErrorKind.INVALID_SPEC, "no name or no size"),
        ({"image": p.ImagePayload(url="ftp://a/b")}, ErrorKind.NOT_SUPPORTED, "neither http, https nor docker"),
        ({"target_host_id": "h1"}, ErrorKind.NOT_SUPPORTED, "not clustered"),
        (
            {"hardware": msgspec.structs.replace(HARDWARE, security_profile=p.SecurityPayload(require_encryption=True))},
            ErrorKind.NOT_SUPPORTED,
            "requires encryption",
        ),
    ],
)
def test_refusals(change: dict[str, Any], kind: ErrorKind, text: str) -> None:
    with pytest.raises(ProviderError, match=text) as error:
        built(**change)
    assert error.value.kind is kind


def test_payloads_that_are_no_json_are_refused() -> None:
    with pytest.raises(ProviderError) as error, failures.mapped():
        description.of_create(msgspec.structs.replace(creation(), networks_json="{"))
    assert error.value.kind is ErrorKind.INVALID_SPEC


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"placement": p.PlacementPayload(cluster="c")}, "spec.placement"),
        ({"placement": p.PlacementPayload(storage_pod="c")}, "spec.placement"),
        ({"hardware": msgspec.structs.replace(HARDWARE, resource_limits=p.LimitsPayload(cpu_limit=1000))}, "resourceLimits"),
        ({"hardware": msgspec.structs.replace(HARDWARE, guest_tools_policy="upgrade")}, "guestToolsPolicy"),
        ({"hardware": msgspec.structs.replace(HARDWARE, extra_config={"a": "b"})}, "extraConfig"),
        ({"networks": (p.NetworkPayload(name="a", bridge="b", pci_slot_number=32),)}, "PCISlotNumber"),
        ({"networks": (p.NetworkPayload(name="a", network_name="n", vlan=3),)}, "VLAN"),
        ({"networks": (p.NetworkPayload(name="a"), p.NetworkPayload(name="b"))}, "networks[1]"),
        ({"meta_data": b"instance-id: 7\n"}, "metaData"),
        ({"disks": (p.DiskPayload(name="a", size_gib=1, type="ssd"),)}, "disks[0].type"),
    ],
)
def test_what_the_target_cannot_do_is_a_named_limitation(change: dict[str, Any], part: str) -> None:
    made = built(**change)
    assert [each for each in made.limitations if part in each], made.limitations
    noted = (made.machine.metadata.annotations or {})["virtrigaud.io/limitations"]
    assert tuple(json.loads(noted)) == made.limitations


def test_an_ordinary_machine_has_no_limitations() -> None:
    assert built(user_data=b"#cloud-config\n", tags=("a",)).limitations == ()


@pytest.mark.parametrize(
    ("network", "wanted"),
    [
        (p.NetworkPayload(name="a"), {"pod": {}}),
        (p.NetworkPayload(name="a", network_name="pod"), {"pod": {}}),
        (p.NetworkPayload(name="a", bridge="br0"), {"multus": {"networkName": "web-a-libvirt"}}),
        (p.NetworkPayload(name="a", network_name="shared"), {"multus": {"networkName": "shared"}}),
        (p.NetworkPayload(name="a", network_name="infra/shared"), {"multus": {"networkName": "infra/shared"}}),
    ],
)
def test_networks(network: p.NetworkPayload, wanted: dict[str, Any]) -> None:
    found = (built(networks=(network,)).machine.spec.template.spec.networks or [])[0]
    assert msgspec.to_builtins(found) == {"name": "a", **wanted}


def test_ignition_is_told_from_cloud_init() -> None:
    ignition = built(user_data=b'{"ignition": {"version": "3.3.0"}}').machine.spec.template.spec.volumes or []
    assert any(each.cloudInitConfigDrive is not None for each in ignition)
    for document in (b'#cloud-config\n"ignition": 1', b'{not json with "ignition"', b'{"other": "ignition"}', b"\xff\xfe"):
        assert not is_ignition(document)
        assert any(each.cloudInitNoCloud is not None for each in built(user_data=document).machine.spec.template.spec.volumes or [])


def test_a_datastore_is_a_storage_class() -> None:
    placement = p.PlacementPayload(datastore="fast")
    made = built(placement=placement, disks=(p.DiskPayload(name="a", size_gib=1, type="thin"),))
    assert [each.spec.storage.storageClassName for each in made.machine.spec.dataVolumeTemplates or () if each.spec.storage] == ["fast"] * 2


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        (p.ImagePayload(template_name="golden/fedora"), ("golden", "fedora")),
        (p.ImagePayload(template_name="fedora", url="http://a"), ("", "fedora")),
        (p.ImagePayload(path="web-migrated"), ("", "web-migrated")),
        (p.ImagePayload(path="/var/lib/libvirt/images/disk-1.qcow2"), ("", "disk-1")),
        (p.ImagePayload(path="/var/lib/libvirt/images/disk"), ("", "disk")),
        (p.ImagePayload(url="http://a", path="b"), ("", "")),
        (p.ImagePayload(), ("", "")),
    ],
)
def test_what_an_image_names(image: p.ImagePayload, wanted: tuple[str, str]) -> None:
    assert booting.named(image) == wanted


def test_nothing_of_a_guest_is_shown() -> None:
    given = description.of_create(creation(user_data=b"password"))
    assert "password" not in repr(given)
    kept = BootDisk(kind=BootKind.CLAIM, name="a", kept=True)
    assert documents.build(given, kept, SETTINGS).limitations == () and IMAGE.url
