"""The conformance suite on the Firecracker driver, with the simulator's processes."""

import functools
import hashlib
import http.server
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.contract import payloads
from paddock.contract.conformance import suite
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.settings import ConformanceSettings
from tests.coroutines import run_by
from tests.kit.providers import providerruns
from tests.unit.drivers.firecracker.conftest import IMAGE, Lab

# What Firecracker does not have.
SKIPPED = {"reconfigure-online", "clone-linked", "exec", "exec-off", "datastores"}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image on a server of this host."""
    place = tmp_path_factory.mktemp("images")
    (place / "disk.raw").write_bytes(b"image" * 4096 + bytes(1 << 20))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(place)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/disk.raw"
    server.shutdown()
    server.server_close()


def settings(lab: Lab, url: str) -> ConformanceSettings:
    digest = hashlib.sha256(b"image" * 4096 + bytes(1 << 20)).hexdigest()
    return ConformanceSettings(
        image=IMAGE,
        memory_mib=256,
        networks=(payloads.NetworkPayload(name="lan", bridge="br0"),),
        prepare={"source": {"http": {"url": url, "checksum": digest}}},
        transfer_url="pvc://claim/moves",
        transfer_directory=str(lab.place / "staging/claim/moves"),
        poll_seconds=0.02,
        settle_seconds=2.0,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@run_by("play")
async def test_the_driver_keeps_the_contract(
    case: ConformanceCase, lab: Lab, url: str, record_property: Callable[[str, object], None]
) -> None:
    async with lab.driver() as driver:
        result = await suite.judge(driver, settings(lab, url), cases=(case,), chance=random.Random(1))
    providerruns.keep(record_property, "firecracker", "a simulator of its API", result)
    (found,) = result.results
    assert (found.status, result.leftovers) == ("skipped" if case.name in SKIPPED else "passed", ()), found.reason
    assert lab.pids() == {}
    assert lab.network.taps == {}
    assert left(lab) == []


def left(lab: Lab) -> list[Path]:
    """What is in the directory beside images and kernels."""
    places = ("machines", "scratch", "disks")
    return [each for place in places for each in (lab.directory / place).iterdir() if not each.name.startswith("conformance-image")]
