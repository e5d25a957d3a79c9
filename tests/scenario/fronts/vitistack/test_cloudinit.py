"""Cloud-init of Machines: where the documents come from, and what follows them."""

import asyncio
import base64

import pytest

from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Vitistack, machine


def secret(**data: str) -> dict[str, object]:
    """A Secret of a user."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": data}


@pytest.mark.spec("vitistack", 45)
@played
async def test_two_sources_are_one_too_many(host: Vitistack, /) -> None:
    await host.make(machine(cloudInit={"userData": "#cloud-config\nhostname: a\n", "secretRef": {"name": "login"}}))
    await host.up()
    volume = (await host.vm())["spec"]["template"]["spec"]["volumes"][-1]
    assert volume["cloudInitNoCloud"] == {"userData": "#cloud-config\nhostname: a\n"}
    assert (await host.events("web", "Machine")).count("CloudInitSourceAmbiguous") == 1
    await host.again()
    await asyncio.sleep(120)
    assert (await host.events("web", "Machine")).count("CloudInitSourceAmbiguous") == 1


@pytest.mark.spec("vitistack", 50)
@played
async def test_copies_follow_their_secret(host: Vitistack, /) -> None:
    await host.make(secret(mine="#cloud-config\n# one"), machine(cloudInit={"secretRef": {"name": "login", "key": "mine"}}))
    await host.up()
    run = (await host.vmi())["metadata"]["uid"]

    async def copied() -> str:
        return base64.b64decode((await host.seen("Secret", "web-cloudinit"))["data"]["userdata"]).decode()

    assert await copied() == "#cloud-config\n# one"
    await host.merge("Secret", "login", {"stringData": {"mine": "#cloud-config\n# two"}})
    await asyncio.sleep(5)
    assert await copied() == "#cloud-config\n# two"
    # and stay what they are
    await host.merge("Secret", "web-cloudinit", {"stringData": {"userdata": "x"}})
    await asyncio.sleep(5)
    assert await copied() == "#cloud-config\n# two"
    assert (await host.vmi())["metadata"]["uid"] == run
    # a copy that is not needed any more goes
    await host.merge("Machine", "web", {"spec": {"cloudInit": None}})
    await asyncio.sleep(30)
    assert await host.seen("Secret", "web-cloudinit") == {}
    assert await host.seen("Secret", "login") != {}


@played
async def test_the_users_secret_outlives_the_machine(host: Vitistack, /) -> None:
    await host.make(secret(mine="#cloud-config"), machine(cloudInit={"secretRef": {"name": "login", "key": "mine"}}))
    await host.up()
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.names("Secret") == ["login"]
