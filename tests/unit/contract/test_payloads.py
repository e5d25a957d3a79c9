"""The JSON inside messages has Go's names and Go's nulls, and is read as leniently as Go reads it."""

import pytest

from paddock.contract import payloads as p

CLASS = (
    '{"CPU":4,"MemoryMiB":8192,"Firmware":"UEFI","DiskDefaults":{"Type":"thin","SizeGiB":40},"GuestToolsPolicy":"install",'
    '"ExtraConfig":{"a":"1","b":"2"},"PerformanceProfile":{"LatencySensitivity":"high","CPUHotAddEnabled":true,"MemoryHotAddEnabled":false,'
    '"VirtualizationBasedSecurity":false,"NestedVirtualization":true,"HyperThreadingPolicy":"auto"},'
    '"SecurityProfile":{"SecureBoot":true,"TPMEnabled":true,"TPMVersion":"2.0","VTDEnabled":false,"EncryptionEnabled":false,'
    '"KeyProvider":"","RequireEncryption":false},'
    '"ResourceLimits":{"CPULimit":null,"CPUReservation":500,"MemoryLimitMiB":null,"MemoryReservationMiB":null,"CPUShares":0}}'
)
EMPTY_CLASS = (
    '{"CPU":0,"MemoryMiB":0,"Firmware":"","DiskDefaults":null,"GuestToolsPolicy":"","ExtraConfig":null,"PerformanceProfile":null,'
    '"SecurityProfile":null,"ResourceLimits":null}'
)
IMAGE = '{"TemplateName":"9000","Path":"","URL":"https://host/a","Format":"qcow2","Checksum":"ab","ChecksumType":"sha256"}'
NETWORK = (
    '{"Name":"lan","Portgroup":"pg","NetworkName":"pg","Bridge":"vmbr0","VLAN":7,"Model":"virtio","MacAddress":"","IPPolicy":"",'
    '"StaticIP":"10.0.0.2","Prefix":24,"Gateway":"10.0.0.1","DNS":"1.1.1.1,8.8.8.8","PCISlotNumber":null}'
)
DISK = '{"SizeGiB":10,"Type":"thin","Name":"data"}'
PLACEMENT = '{"Datastore":"ds","StoragePod":"","Cluster":"c","Folder":"","Host":"h"}'
DESIRED = (
    f'{{"Name":"web","Class":{CLASS},"Image":{IMAGE},"Networks":[{NETWORK}],"Disks":[{DISK}],'
    f'"UserData":{{"CloudInitData":"#cloud-config","Type":"cloud-init"}},"MetaData":{{"MetaDataYAML":"a: b"}},'
    f'"Placement":{PLACEMENT},"Tags":["x"]}}'
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (CLASS, p.ClassPayload),
        (EMPTY_CLASS, p.ClassPayload),
        (IMAGE, p.ImagePayload),
        (NETWORK, p.NetworkPayload),
        (DISK, p.DiskPayload),
        (PLACEMENT, p.PlacementPayload),
        (DESIRED, p.DesiredPayload),
    ],
)
def test_bytes_are_those_of_go(text: str, kind: type[p.JsonPayload]) -> None:
    assert p.encode(p.decode(text, kind)) == text


def test_what_is_absent() -> None:
    assert p.encode(p.ClassPayload()) == EMPTY_CLASS
    assert p.encode_list(()) == "null"
    assert p.encode(None) == ""
    desired = p.encode(p.DesiredPayload())
    for name in ("Networks", "Disks", "UserData", "MetaData", "Placement", "Tags"):
        assert f'"{name}":null' in desired


def test_lists() -> None:
    assert p.encode_list((p.DiskPayload(size_gib=10, type="thin", name="data"),)) == f"[{DISK}]"
    assert p.decode_list(f"[{DISK}]", p.DiskPayload) == (p.DiskPayload(size_gib=10, type="thin", name="data"),)
    assert p.decode_list("null", p.DiskPayload) == p.decode_list("", p.DiskPayload) == ()


@pytest.mark.parametrize(
    ("text", "cpu"),
    [("", 0), ("null", 0), ('{"CPU":null}', 0), ('{"cpu":3}', 3), ('{"cpu":3,"CPU":4}', 4), ('{"CPU":4,"cpu":3}', 4), ('{"Other":1}', 0)],
)
def test_reading_is_lenient(text: str, cpu: int) -> None:
    assert p.decode(text, p.ClassPayload).cpu == cpu


def test_reading_inside_is_lenient() -> None:
    found = p.decode('{"class":{"diskdefaults":{"sizegib":4,"type":null}},"disks":[{"name":"a"},null]}', p.DesiredPayload)
    assert found.machine_class.disk_defaults == p.DiskDefaultsPayload(size_gib=4)
    assert found.disks == (p.DiskPayload(name="a"), p.DiskPayload())


def test_placement_may_be_absent() -> None:
    assert p.decode_optional("", p.PlacementPayload) is None
    assert p.decode_optional("{}", p.PlacementPayload) == p.PlacementPayload()


@pytest.mark.parametrize("text", ["[", "[]", '{"CPU":"x"}', '{"CPU":1.5}', '"x"', "1", "[" * 100_000, '{"DiskDefaults":[]}', "\ud800"])
def test_what_does_not_fit_is_a_typed_error(text: str) -> None:
    with pytest.raises(p.InvalidPayload):
        p.decode(text, p.ClassPayload)


@pytest.mark.parametrize("text", ["{}", "[1]", "x"])
def test_lists_that_do_not_fit(text: str) -> None:
    with pytest.raises(p.InvalidPayload):
        p.decode_list(text, p.DiskPayload)


def test_manifests() -> None:
    assert p.decode_manifest('{"source":{"http":{"url":"u"}}}') == {"source": {"http": {"url": "u"}}}
    assert p.decode_manifest("") == {}
    assert p.encode_manifest({"b": 1, "a": 2}) == '{"a":2,"b":1}'
    with pytest.raises(p.InvalidPayload):
        p.decode_manifest("[]")


def test_guests_data_is_hidden() -> None:
    desired = p.DesiredPayload(
        user_data=p.UserDataPayload(cloud_init_data="hunter2"), meta_data=p.MetaDataPayload(meta_data_yaml="hunter2")
    )
    assert "hunter2" not in repr(desired)
    with pytest.raises(p.InvalidPayload) as error:
        p.decode('{"UserData":{"CloudInitData":"hunter2"', p.DesiredPayload)
    assert "hunter2" not in str(error.value)
