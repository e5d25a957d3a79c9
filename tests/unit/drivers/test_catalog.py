"""The catalog of drivers: every type of a Provider has a driver or a reason."""

import pytest

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract.factory import DriverContext
from paddock.dialects.virtrigaud.shared import PROVIDER_TYPES
from paddock.drivers import catalog
from paddock.drivers.catalog import DriverUnavailable
from tests.scripted import scripted


@scripted
async def test_every_driver_can_be_made() -> None:
    for name in catalog.available():
        factory = catalog.find(name)
        if name == "fake":
            async with factory(DriverContext(clock=SystemClock(), seed=3)) as driver:
                assert (await driver.validate(m.ValidateRequest())).ok


@pytest.mark.parametrize("name", ["libvirt", "vsphere", "proxmox", "firecracker"])
def test_a_type_without_a_driver_has_a_reason(name: str) -> None:
    with pytest.raises(DriverUnavailable, match=f"cannot serve a provider of type {name}: .*there is no|Paddock has no"):
        catalog.find(name)


def test_a_wrong_type_has_a_hint() -> None:
    with pytest.raises(DriverUnavailable, match='did you mean "libvirt"'):
        catalog.find("libvrit")


@pytest.mark.parametrize("name", ["nowhere:make", "json:make", ":make", "json:"])
def test_a_module_that_cannot_be_loaded_is_named(name: str) -> None:
    with pytest.raises(DriverUnavailable, match="cannot load the driver"):
        catalog.find(name)


def test_a_driver_of_somebody_else_is_found() -> None:
    assert catalog.find("paddock.drivers.fake.factory:make") is catalog.find("fake")


def test_the_types_of_providers_are_known() -> None:
    # qemu is the kubevirt driver on Paddock's own server.
    assert set(PROVIDER_TYPES) - {"qemu"} <= set(catalog.TYPES)
