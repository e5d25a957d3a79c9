"""`paddock move` between two whole hosts in virtual time: there and back, killed anywhere, undone, and refused."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests import virtualtime
from tests.fakehost import Data, machine
from tests.scenario.commands.moving import TwoHosts

TEMPLATES = [
    {
        "metadata": {"name": "web-root"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
]
VOLUMES = [
    {"name": "root", "dataVolume": {"name": "web-root"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
    {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "web-init"}}},
]
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-init"}, "data": {"userdata": "I2Nsb3VkLWNvbmZpZw=="}}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "web-data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
Script = Callable[[TwoHosts], Awaitable[None]]


def play(root: Path, script: Script) -> None:
    async def inside() -> None:
        async with TwoHosts(root) as hosts:
            await script(hosts)

    virtualtime.run(inside())


def web(strategy: str = "Always") -> Data:
    return machine(strategy=strategy, volumes=[dict(each) for each in VOLUMES], templates=[dict(each) for each in TEMPLATES])


async def begin(hosts: TwoHosts, strategy: str = "Always") -> None:
    await hosts.hosts["here"].make(SECRET, CLAIM, web(strategy))
    if strategy != "Halted":
        await hosts.hosts["here"].running(seconds=60)


async def names(hosts: TwoHosts, where: str, path: str = CLAIMS) -> set[str]:
    return {each["metadata"]["name"] for each in (await hosts.hosts[where].api.get(path)).data["items"]}


def test_a_machine_moves_with_its_disks(tmp_path: Path) -> None:
    async def script(hosts: TwoHosts) -> None:
        await begin(hosts)
        planned = list((await hosts.plan()).lines())
        assert planned[0] == "vm/web moves to namespace default of https://there"
        assert "  makes Secret web-init" in planned
        answer = await hosts.move()
        assert answer == "moved to namespace default of https://there; the source stays fenced until --delete-source"
        assert await hosts.guest("there", "web") and not await hosts.guest("here", "web")
        assert hosts.hosts["there"].engine.images.uploads == [hosts.content("web-root"), hosts.content("web-data")]
        assert await names(hosts, "there") == {"web-root", "web-data"}
        assert (await hosts.hosts["there"].get("Secret", "v1", "web-init"))["data"] == SECRET["data"]
        assert await hosts.move() == answer
        assert hosts.twice == []

    play(tmp_path, script)
