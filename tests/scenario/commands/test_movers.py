"""Several commands move one machine at the same time: one goes on, and the others say who does."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from paddock.fleet.machines import finding
from paddock.fleet.moves.mover import CannotMove
from paddock.fleet.moves.moverlease import SECONDS, MoverLease, own_identity
from paddock.kubernetes.client.target import LEASES, Key
from tests.coroutines import played_by
from tests.scenario.commands.moving import TwoHosts
from tests.scenario.commands.test_moving import begin, play

NOBODY = 2**22 + 7


async def leased(hosts: TwoHosts, identity: str, work: Callable[[], Awaitable[str]]) -> str:
    source = await hosts.side("here")
    machine = await finding.find(source.client, "web", "default")
    async with MoverLease(source, machine, identity).held():
        return await work()


async def leases(hosts: TwoHosts) -> list[str]:
    found = (await hosts.hosts["here"].api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases")).data["items"]
    return [each["metadata"]["name"] for each in found]


@pytest.mark.spec("kubevirt", 147)
@played_by(play, "tmp_path")
async def test_of_three_commands_one_moves_the_machine(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    results = await asyncio.gather(*(leased(hosts, f"user{n}@far (process 1)", hosts.move) for n in range(3)), return_exceptions=True)
    refused = [each for each in results if isinstance(each, CannotMove)]
    assert [each for each in results if each not in refused] == [
        "moved to namespace default of https://there; the source stays fenced until --delete-source"
    ]
    assert len(refused) == 2
    for each in refused:
        assert "another command moves it: user" in str(each) and "@far (process 1), since 2027-" in str(each) and each.fix
    assert await hosts.guest("there", "web") and hosts.twice == [] and await leases(hosts) == []


@pytest.mark.spec("kubevirt", 147)
@played_by(play, "tmp_path")
async def test_a_command_that_was_killed_holds_up_no_other_for_long(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    source = await hosts.side("here")
    machine = await finding.find(source.client, "web", "default")
    # On this host it is seen at once that it has ended.
    await MoverLease(source, machine, f"me@{socket.gethostname()} (process {NOBODY})")._take()
    await leased(hosts, own_identity(), lambda: asyncio.sleep(0, "here"))
    await MoverLease(source, machine, "me@far (process 1)")._take()
    with pytest.raises(CannotMove, match="me@far"):
        await leased(hosts, own_identity(), hosts.move)
    await asyncio.sleep(SECONDS + 1)
    assert (await leased(hosts, own_identity(), hosts.move)).startswith("moved to")


@played_by(play, "tmp_path")
async def test_a_lease_is_renewed_as_long_as_the_command_is_at_work(hosts: TwoHosts, /) -> None:
    await begin(hosts)

    async def long() -> str:
        await asyncio.sleep(20 * SECONDS)
        return "done"

    first = asyncio.create_task(leased(hosts, "me@far (process 1)", long))
    await asyncio.sleep(10 * SECONDS)
    with pytest.raises(CannotMove):
        await leased(hosts, own_identity(), hosts.move)
    assert await first == "done" and await leases(hosts) == []


@played_by(play, "tmp_path")
async def test_whoever_may_have_no_lease_moves_without(hosts: TwoHosts, /) -> None:
    await begin(hosts)
    source = await hosts.side("here")
    await source.client.request("POST", "/api/v1/namespaces", body=b'{"metadata": {"name": "gone"}}')
    machine = await finding.find(source.client, "web", "default")
    lease = MoverLease(source, machine, own_identity())
    lease._key = Key("nowhere", lease._key.name)
    async with lease.held():
        assert await source.client.find(LEASES, lease._key) is None
