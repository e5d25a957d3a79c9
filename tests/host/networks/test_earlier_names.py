"""An upgrade to a version that names the host's objects in another way: guests that run keep what they have, and nothing of it stays."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from paddock.engine.networks import hostnames
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.networks import NetworkSettings
from paddock.engine.networks.nics import NicSpec
from tests.coroutines import played
from tests.host.networks.conftest import World
from tests.host.networks.namespaces import Guest, run
from tests.host.networks.test_sharing import alike, left

pytestmark = pytest.mark.needs("netns", "tun", "nft", "busybox")
WEB = NicSpec("web", "default", hostname="web", group="default")
DB = NicSpec("db", "default", hostname="db", group="default")
USERS = (2_000_262_144, 2_000_524_287)
Before = Callable[[], None]


@pytest.fixture
def earlier() -> Iterator[Before]:
    """This version takes the place of the earlier one, when the function is called."""
    forms = hostnames._FORMS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostnames, "_FORMS", forms[1:])
        yield lambda: patch.setattr(hostnames, "_FORMS", forms)


@pytest.mark.spec("kubevirt", 135)
@pytest.mark.rooted("no version with such names had namespaces")
@played
async def test_guests_of_an_earlier_version_keep_their_network(world: World, /, earlier: Before) -> None:
    old = world.networks
    guest = Guest(world.lab, "web", await old.plug(WEB))
    await guest.dhcp()
    before, addresses = left(), guest.plug
    await old.close()
    earlier()
    new = world.networks = world.fresh()
    await new.open()
    assert await guest.can_ping("10.0.2.1"), "its network goes on before anybody plugs it"
    assert await new.plug(WEB) == addresses
    await new.collect(["web"])
    assert left() == before, "not one object was made anew"
    db = Guest(world.lab, "db", await new.plug(DB))
    await db.dhcp()
    assert await guest.can_ping(db.plug.address) and await db.can_ping(guest.plug.address)
    await new.close()
    again = world.networks = world.fresh()
    await again.open()
    for card in (WEB, DB):
        await again.plug(card)
    assert await guest.can_ping(db.plug.address)
    guest.unplug()
    db.unplug()
    await again.release({"web"})
    assert left() != []
    await again.release({"db"})
    assert left() == [], "the last card took everything along"
    await again.plug(DB)
    assert again.instance == hostnames.every(world.lab.folder / "networks")[0].instance


@pytest.mark.spec("kubevirt", 136)
@pytest.mark.rooted("no version with such names had namespaces")
@played
async def test_a_purge_takes_what_an_earlier_version_left(world: World, /, earlier: Before) -> None:
    await world.networks.plug(WEB)
    await world.networks.close()
    earlier()
    world.networks = world.fresh()
    assert left() != []
    # As `paddock down --purge` does: nobody has opened the networks before.
    await world.networks.destroy()
    assert left() == []
    world.networks = world.fresh()


@pytest.mark.spec("kubevirt", 136)
@pytest.mark.rooted("no version with such names had namespaces")
@played
async def test_the_next_server_removes_what_a_directory_of_an_earlier_version_left(world: World, /, earlier: Before) -> None:
    gone = world.beside("gone")
    await gone.plug(WEB)
    await gone.close()
    earlier()
    shutil.rmtree(world.lab.folder / "gone")
    await world.fresh().open()
    assert left() == []


@pytest.mark.spec("kubevirt", 136)
@pytest.mark.parametrize("end", ["purge", "last guest"])
@pytest.mark.rooted("no version with such names had namespaces")
@played
async def test_filters_of_an_earlier_version_go_in_user_mode_too(world: World, /, earlier: Before, end: str) -> None:
    world.settings = NetworkSettings(mode="user")
    await world.networks.close()
    old = world.fresh()
    old.users = USERS
    await old.plug(WEB)
    assert left() == [f"table inet {hostnames.every(world.lab.folder / 'networks')[0].filters}"]
    await old.close()
    earlier()
    new = world.networks = world.fresh()
    new.users = USERS
    await new.plug(WEB)
    assert left() == [f"table inet {hostnames.every(world.lab.folder / 'networks')[0].filters}"]
    await (new.destroy() if end == "purge" else new.release({"web"}))
    assert left() == []


@pytest.mark.spec("kubevirt", 118)
@pytest.mark.rooted("no version with such names had namespaces")
@played
async def test_the_network_of_another_directory_with_the_same_earlier_name_stays(world: World, /, earlier: Before) -> None:
    first, second = alike(world.lab.folder)
    other = world.beside(first)
    guest = Guest(world.lab, "web", await other.plug(WEB))
    await guest.dhcp()
    await other.close()
    earlier()
    new = world.beside(second)
    await new.open()
    await new.plug(DB)
    await new.destroy()
    assert await guest.can_ping("10.0.2.1")
    again = world.beside(first)
    await again.plug(WEB)
    await again.destroy()
    assert left() == []


@played
async def test_a_route_that_leads_the_network_elsewhere_is_named_with_advice_that_ends_nothing(world: World, /) -> None:
    plug = await world.networks.plug(WEB)
    await world.networks.unplug("web", "default")
    run("ip", "-n", world.lab.host, "link", "add", "stranger", "type", "bridge")
    run("ip", "-n", world.lab.host, "link", "set", "stranger", "up")
    run("ip", "-n", world.lab.host, "route", "add", f"{plug.address}/32", "dev", "stranger")
    with pytest.raises(NetworkUnusable, match=f"leads {plug.address}/32 to stranger") as failed:
        await world.networks.plug(WEB)
    assert "addresses.json" not in failed.value.fix and "`ip -d link show stranger`" in failed.value.fix
    run("ip", "-n", world.lab.host, "link", "delete", "stranger")
    assert (await world.networks.plug(WEB)).address == plug.address
    await world.networks.unplug("web", "default")
