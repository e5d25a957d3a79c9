"""What `paddock provider check` says of a hypervisor, on libvirt's own driver for tests."""

import pytest

from paddock.contract.examination import Examiner
from paddock_drivers.libvirt.abilities import HypervisorAbilities
from tests.coroutines import played
from tests.unit.drivers.libvirt.conftest import Bench

libvirt = pytest.importorskip("libvirt", reason="libvirt-python is not installed; it is built where libvirt-dev and pkg-config are")


@played
async def test_a_hypervisor_is_examined(found: Bench, /) -> None:
    assert isinstance(found.driver, Examiner)
    said = {each.check: each for each in await found.driver.examine()}
    assert said["release"].text.startswith("libvirt ") and said["pools"].text == "default-pool"
    # Newer drivers for tests say that they have KVM.
    assert said["networks"].grade == "good" and said["accelerator"].grade in ("good", "warning")


@played
async def test_what_is_not_started_is_named(found: Bench, /) -> None:
    await found.connection.run(lambda conn: conn.networkLookupByName("default").destroy())
    assert isinstance(found.driver, Examiner)
    (said,) = [each for each in await found.driver.examine() if each.check == "networks"]
    assert (said.grade, said.text) == ("warning", "default not started") and "net-start" in said.fix


@pytest.mark.parametrize(
    ("found", "grades"),
    [
        (HypervisorAbilities(type="kvm", efi=True, secure_boot=True, tpm=True), ("good", "good")),
        (HypervisorAbilities(type="qemu", efi=True), ("warning", "warning")),
    ],
)
def test_accelerator_and_firmware(found: HypervisorAbilities, grades: tuple[str, str]) -> None:
    from paddock_drivers.libvirt import examination  # noqa: PLC0415 - without the library, tests skip

    assert (examination._accelerator(found).grade, examination._firmware(found).grade) == grades
