"""Filters of adoption, and names of adopted machines."""

import json

import pytest

from paddock.contract import messages as m
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import adoption
from paddock.dialects.virtrigaud.plan.adoption import AdoptionFilter, BadFilter, KnownMachines
from paddock.kubernetes.meta.objects import ObjectMeta


def filtered(text: str) -> AdoptionFilter:
    metadata = ObjectMeta(name="lab", annotations={"virtrigaud.io/adopt-filter": text})
    return adoption.read_filter(Provider(metadata=metadata))


@pytest.mark.spec("virtrigaud", 73)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", ""),
        ("[]", ""),
        ('{"name": "a"}', "name"),
        ('{"minCPU": "2"}', "minCPU"),
        ('{"minCPU": -1}', "minCPU"),
        ('{"namePattern": "("}', "("),
        ('{"namePattern": "(?=a)"}', "(?=a)"),
        ('{"powerState": "Up"}', "neither On nor Off"),
        ('{"minCPU": 3, "maxCPU": 2}', "minCPU 3 is more than maxCPU 2"),
        ('{"minMemoryMiB": 3, "maxMemoryMiB": 2}', "minMemoryMiB 3"),
    ],
)
def test_a_filter_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(BadFilter) as error:
        filtered(text)
    assert "virtrigaud.io/adopt-filter" in str(error.value) and why in str(error.value)


@pytest.mark.spec("virtrigaud", 73)
def test_a_size_that_the_provider_does_not_tell_is_within_no_bound() -> None:
    machine = m.VMInfo(id="1", name="a", power_state="poweredOn")
    assert filtered("").matches(machine) and filtered('{"powerState": "On"}').matches(machine)
    for name in ("minCPU", "maxCPU", "minMemoryMiB", "maxMemoryMiB"):
        assert not filtered(json.dumps({name: 1})).matches(machine)


@pytest.mark.parametrize(("name", "wanted"), [("Web_Server 1.a", "web-server-1-a"), ("a" * 70, "a" * 63), ("a" * 62 + "._", "a" * 62)])
def test_the_name_of_an_object(name: str, wanted: str) -> None:
    assert adoption.object_name(name) == wanted


def test_unknown_sizes_and_disks_are_not_made_up() -> None:
    provider = Provider(metadata=ObjectMeta(name="lab", namespace="team"))
    disk = m.VMDiskInfo(id="d", path="/d", size_gib=0, format="vhd")
    machine = m.VMInfo(id="1", name="a", power_state="On", disks=(disk,))
    made = adoption.virtual_machine(machine, "a", provider)
    assert (made.spec.importedDisk, made.spec.resources, made.spec.classRef.name) == (None, None, "adopted-2cpu-4096mb")
    assert adoption.sizes(machine) is None


def test_a_machine_of_another_manager_is_left_alone() -> None:
    listed = (m.VMInfo(id="1", name="a", power_state="On", provider_raw={"managed": "true"}), m.VMInfo(id="", name="b", power_state="On"))
    plan = adoption.decide(listed, AdoptionFilter(), KnownMachines(), frozenset())
    assert not plan.machines and plan.problems == ("b: the Provider lists it without an id",)
