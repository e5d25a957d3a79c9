"""The conformance suite on the vSphere driver, with VMware's simulator."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from paddock.contract import payloads
from paddock.contract.conformance import suite
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock_drivers.vsphere import factory
from tests.kit.providers import providerruns
from tests.reference.vsphere.appliances import appliance, serving
from tests.reference.vsphere.vcenter import Simulator, running, template

pytestmark = pytest.mark.reference

SETTINGS = ConformanceSettings(
    image=payloads.ImagePayload(template_name="conformance"),
    networks=(payloads.NetworkPayload(name="lan", network_name="VM Network"),),
    poll_seconds=0.05,
)


# What govmomi's simulator does not do: a revert moves a mark and brings nothing back, and disks are files without bytes.
LACKING = ["snapshot-memory", "snapshot-revert", "export", "import", "import-checksum", "transfer-delete"]


@contextmanager
def prepared(vcsim: Path, directory: Path, model: Mapping[str, bool]) -> Iterator[Simulator]:
    """A simulator of a model with the template of the suite."""
    with running(vcsim, directory, model) as simulator:
        template(simulator, "DC0_H0_VM0", "conformance")
        yield simulator


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a small appliance."""
    folder = tmp_path_factory.mktemp("images")
    appliance(folder / "tiny.ova")
    with serving(folder) as url:
        yield f"{url}/tiny.ova"


def judged(simulator: Simulator, staging: Path, image: str) -> SuiteResult:
    settings = msgspec.structs.replace(
        SETTINGS,
        prepare={"source": {"vsphere": {"ovaURL": image}}},
        transfer_url="pvc://claim/conformance",
        transfer_directory=str(staging / "claim" / "conformance"),
    )
    context = msgspec.structs.replace(simulator.context(PROVIDER_IMAGE_HOSTS="127.0.0.1"), staging=staging)

    async def whole() -> SuiteResult:
        async with factory.make(context) as driver:
            return await suite.judge(driver, settings, chance=random.Random(1))

    return asyncio.run(whole())


@pytest.mark.parametrize("model", [{}, {"carrying": True}], ids=["clones-bare", "clones-carrying"])
def test_the_driver_keeps_the_contract(
    vcsim: Path, images: str, model: dict[str, bool], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with prepared(vcsim, tmp_path / "vcsim", model) as simulator:
        result = judged(simulator, tmp_path, images)
    providerruns.keep(record_property, "vsphere", "VMware's simulator of vCenter", result)
    assert result.good, "\n".join(f"{each.name}: {each.reason}" for each in result.results if each.status == "failed")
    assert not [
        each.name for each in result.results if each.status == "skipped" and each.name.startswith(("image", "export", "clone", "snap"))
    ]


@pytest.mark.spec("virtrigaud", 155)
def test_the_driver_keeps_what_the_simulator_as_it_is_can_show(vcsim: Path, images: str, tmp_path: Path) -> None:
    with prepared(vcsim, tmp_path / "vcsim", {"unaltered": True}) as simulator:
        result = judged(simulator, tmp_path, images)
    assert [each.name for each in result.results if each.status == "failed"] == LACKING
    assert [each.name for each in result.results if each.status == "skipped"] == ["exec", "exec-off"]
