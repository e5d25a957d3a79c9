"""The five examples of VirtRigaud's CRD reference on a whole host in virtual time; only the Provider's type is another one."""

import asyncio
from importlib.resources import files
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.fronts.virtrigaud.test_ownserver import Stage

Data = dict[str, Any]
TEXT = (files("paddock.dialects") / "virtrigaud" / "examples" / "documented.yaml").read_text()
IMAGE = "https://cloud-images.ubuntu.com/jammy/current/jammy-server-cloudimg-amd64.img"
NAME = "web-server"


def documents() -> dict[str, Data]:
    """The documents as a program with YAML 1.1 reads them: `powerState: On` is true."""
    return {each["kind"]: each for each in yaml.safe_load_all(TEXT.replace("type: vsphere\n", "type: qemu\n"))}


async def ready(stage: Stage) -> tuple[str, str, str]:
    conditions = (await stage.get(name=NAME)).get("status", {}).get("conditions") or []
    found: Data = next((each for each in conditions if each["type"] == "Ready"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


@pytest.mark.spec("virtrigaud", 22, 116)
@pytest.mark.parametrize("order", [*permutations(range(5), 5)][::17])
@run_by(virtualtime.run)
async def test_the_machine_waits_for_its_network_and_runs_when_it_is_there(tmp_path: Path, order: tuple[int, ...]) -> None:
    async with FakeHost(tmp_path) as host:
        host.engine.images.offer(IMAGE)
        stage, given = Stage(host), documents()
        assert given["VirtualMachine"]["spec"]["powerState"] is True
        await stage.make(*(list(given.values())[each] for each in order))
        await asyncio.sleep(120)
        assert await ready(stage) == (
            "False",
            "WaitingForDependencies",
            "there is no VMNetworkAttachment default/app-network-attachment",
        )
        assert (await stage.get(name=NAME))["spec"]["powerState"] == "On" and await stage.kubevirt() == []
        # The document's own network under the name that its machine gives.
        await stage.make({**given["VMNetworkAttachment"], "metadata": {"name": "app-network-attachment"}})
        async with asyncio.timeout(600):
            while (await ready(stage))[0] != "True":
                await asyncio.sleep(1)
        status = (await stage.get(name=NAME))["status"]
        assert (status["phase"], status["powerState"]) == ("Running", "On")
        assert status["id"] and status["ips"] and status["currentResources"] == {"cpu": 2, "memoryMiB": 4096}
        (vm,) = await stage.kubevirt()
        assert vm["status"]["printableStatus"] == "Running"
        image = (await stage.get("vmimages", "ubuntu-22-template"))["status"]
        assert (image["phase"], image["availableOn"]) == ("Ready", ["vsphere-prod"])
