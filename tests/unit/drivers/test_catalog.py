"""The catalog of drivers: every type of a Provider has a driver or a reason."""

import json
from pathlib import Path

import pytest

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.contract.factory import DriverContext
from paddock.dialects.virtrigaud.kinds.shared import PROVIDER_TYPES
from paddock.dialects.virtrigaud.translate import described
from paddock.kubernetes.client.errors import BadAccess
from paddock_drivers import catalog
from paddock_drivers.catalog import DriverUnavailable
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from tests.coroutines import scripted


@scripted
async def test_the_fake_driver_is_made() -> None:
    async with catalog.find("fake")(DriverContext(clock=SystemClock(), seed=3)) as driver:
        assert (await driver.validate(m.ValidateRequest())).ok


def _kubeconfig(folder: Path) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "one", "user": {"token": "none"}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one", "namespace": "machines"}}],
    }
    path = folder / "config"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["kubevirt", "qemu"])
@scripted
async def test_a_kubevirt_driver_uses_the_api_of_the_environment(name: str, tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(_kubeconfig(tmp_path))}
    context = DriverContext(clock=SystemClock(), environment=environment, translation=described.translate)
    async with catalog.find(name)(context) as driver:
        assert isinstance(driver, KubeVirtDriver)
        with pytest.raises(ProviderError, match=r"cannot connect to 127\.0\.0\.1:1"):
            await driver.validate(m.ValidateRequest())


@scripted
async def test_a_kubevirt_driver_without_a_translation_is_refused(tmp_path: Path) -> None:
    context = DriverContext(clock=SystemClock(), environment={"KUBECONFIG": str(_kubeconfig(tmp_path))})
    with pytest.raises(ProviderError, match=r"give DriverContext\.translation"):
        async with catalog.find("qemu")(context):
            pass


@scripted
async def test_a_kubevirt_driver_without_an_api_is_refused(tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "none")}
    with pytest.raises(BadAccess):
        async with catalog.find("qemu")(DriverContext(clock=SystemClock(), environment=environment)):
            pass


def test_a_wrong_type_has_a_hint() -> None:
    with pytest.raises(DriverUnavailable, match='did you mean "libvirt"'):
        catalog.find("libvrit")


@pytest.mark.parametrize("name", ["nowhere:make", "json:make", ":make", "json:"])
def test_a_module_that_cannot_be_loaded_is_named(name: str) -> None:
    with pytest.raises(DriverUnavailable, match="cannot load the driver"):
        catalog.find(name)


def test_a_driver_of_somebody_else_is_found() -> None:
    assert catalog.find("paddock_drivers.fake.factory:make") is catalog.find("fake")


def test_the_types_of_providers_are_known() -> None:
    assert set(PROVIDER_TYPES) <= set(catalog.TYPES)
    assert all(catalog.find(name) for name in ("fake", "kubevirt", "qemu", "firecracker", "vsphere"))


def test_a_driver_without_its_library_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "find_spec", lambda name: None)
    with pytest.raises(DriverUnavailable, match=r"libvirt is not installed; .*pip install 'paddock\[libvirt\]'"):
        catalog.find("libvirt")
    with pytest.raises(DriverUnavailable, match=r"pyVmomi is not installed; `pip install 'paddock\[vsphere\]'"):
        catalog.find("vsphere")
