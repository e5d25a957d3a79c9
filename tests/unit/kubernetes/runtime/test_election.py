"""Leader election in virtual time: never two leaders, and somebody takes over."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.app.localtransport import door
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.retrying import Retries
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock.kubernetes.runtime.election import BadTerms, Election, LeaseTerms, StillActing
from paddock.kubernetes.runtime.machinery import Machinery
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.declarations.sampling import one_in
from tests.kit.servers.apiharness import Harness

LEASE = Key("default", "controllers")


class Wire:
    """A way to the server that can be slow or broken."""

    def __init__(self, inner: LocalTransport) -> None:
        self._inner = inner
        self.broken = False
        self.delay = 0.0

    async def send(self, ask: TransportRequest) -> TransportResponse:
        await asyncio.sleep(self.delay)
        if self.broken:
            raise Unreachable("the wire is cut", sent=False)
        reply = await self._inner.send(ask)
        # The answer may be the part that gets lost.
        await asyncio.sleep(self.delay)
        if self.broken:
            raise Unreachable("the wire is cut", sent=True)
        return reply

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        return await self._inner.stream(ask)

    async def close(self) -> None:
        await self._inner.close()


class Stage:
    """Candidates on one server, and who acts when."""

    def __init__(self, api: Harness) -> None:
        self.api = api
        self.acting: list[str] = []
        self.most = 0
        self.history: list[tuple[float, str]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def candidate(self, name: str, *, skew: float = 0.0, stubborn: float = 0.0) -> tuple[Wire, asyncio.Task[None], Election]:
        wire = Wire(LocalTransport(door(self.api.api, name)))
        client = Client(wire, ClientSettings(retries=Retries(attempts=1)))
        machinery = Machinery(clock=virtualtime.Clock(skew), chance=random.Random(name))
        election = Election(client, LeaseTerms(key=LEASE, identity=name), machinery)

        async def lead() -> None:
            self.acting.append(name)
            self.most = max(self.most, len(self.acting))
            self.history.append((asyncio.get_running_loop().time(), name))
            try:
                await asyncio.Event().wait()
            finally:
                # A controller in the middle of something needs a moment.
                if stubborn:
                    await asyncio.sleep(stubborn)
                self.acting.remove(name)

        task = asyncio.create_task(election.run(lead))
        self.tasks.append(task)
        return wire, task, election


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    async with Harness() as api:
        made = Stage(api)
        yield made
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)


async def spec(api: Harness) -> Data:
    found: Data = (await api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/controllers")).data["spec"]
    return found


async def kill(task: "asyncio.Task[None]", wire: Wire) -> None:
    """End a candidate the way a crash does: nothing is released."""
    wire.broken = True
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@run_by(virtualtime.run)
async def test_one_of_two_leads_and_hands_over_when_it_stops() -> None:
    async with stage() as play:
        _, first, election = play.candidate("a")
        await asyncio.sleep(1)
        _, _, _ = play.candidate("b")
        await asyncio.sleep(300)
        assert (play.acting, election.leading, play.most) == (["a"], True, 1)
        held = await spec(play.api)
        assert (held["holderIdentity"], held["leaseDurationSeconds"], held["leaseTransitions"]) == ("a", 15, 0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert (await spec(play.api))["holderIdentity"] == ""
        stopped = asyncio.get_running_loop().time()
        await asyncio.sleep(10)
        assert play.acting == ["b"]
        # Released, not run out: within two looks of the other.
        assert play.history[-1][0] - stopped <= 2 * 2 * 2.2
        held = await spec(play.api)
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("b", 1)


@pytest.mark.parametrize("skew", [0.0, 3600.0, -3600.0])
@run_by(virtualtime.run)
async def test_a_crash_is_noticed_whatever_the_clocks_say(skew: float) -> None:
    async with stage() as play:
        wire, first, _ = play.candidate("a")
        await asyncio.sleep(1)
        play.candidate("b", skew=skew)
        await asyncio.sleep(100)
        assert play.acting == ["a"]
        await kill(first, wire)
        crashed = asyncio.get_running_loop().time()
        await asyncio.sleep(30)
        assert play.acting == ["b"]
        taken = play.history[-1][0] - crashed
        assert 15 - 2 - 0.1 <= taken <= 15 + 2 * 2.2


@run_by(virtualtime.run)
async def test_a_leader_that_cannot_renew_stops_before_anybody_takes_over() -> None:
    async with stage() as play:
        wire, _, first = play.candidate("a", stubborn=3)
        await asyncio.sleep(1)
        play.candidate("b")
        await asyncio.sleep(50)
        wire.broken = True
        cut = asyncio.get_running_loop().time()
        while "a" in play.acting:
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() - cut <= 10 + 3 + 0.2
        assert not first.leading
        await asyncio.sleep(20)
        assert (play.acting, play.most) == (["b"], 1)
        wire.broken = False
        await asyncio.sleep(60)
        assert play.acting == ["b"]


@run_by(virtualtime.run)
async def test_a_lease_that_somebody_deletes_is_made_again() -> None:
    async with stage() as play:
        play.candidate("a")
        await asyncio.sleep(5)
        await play.api.delete("/apis/coordination.k8s.io/v1/namespaces/default/leases/controllers")
        await asyncio.sleep(5)
        assert (play.acting, len(play.history)) == (["a"], 1)
        assert (await spec(play.api))["holderIdentity"] == "a"


@run_by(virtualtime.run)
async def test_somebody_else_in_the_lease_ends_leadership_at_once() -> None:
    async with stage() as play:
        play.candidate("a")
        await asyncio.sleep(5)
        await play.api.merge("/apis/coordination.k8s.io/v1/namespaces/default/leases/controllers", {"spec": {"holderIdentity": "operator"}})
        await asyncio.sleep(2.5)
        assert play.acting == []
        await asyncio.sleep(30)
        assert play.acting == ["a"]


@run_by(virtualtime.run)
async def test_work_that_does_not_end_ends_the_program() -> None:
    async with stage() as play:
        wire, task, _ = play.candidate("a", stubborn=60)
        await asyncio.sleep(5)
        wire.broken = True
        with pytest.raises(StillActing):
            await task


@run_by(virtualtime.run)
async def test_the_end_of_the_work_is_the_end_and_its_error_is_raised() -> None:
    async with Harness() as api, Client(LocalTransport(door(api.api, "a"))) as client:
        election = Election(client, LeaseTerms(key=LEASE, identity="a"), Machinery(clock=virtualtime.Clock()))

        async def lead() -> None:
            raise KeyError("broken")

        with pytest.raises(KeyError):
            await election.run(lead)
        assert (await spec(api))["holderIdentity"] == ""


@run_by(virtualtime.run)
async def test_terms_that_would_let_two_lead_are_refused() -> None:
    async with Harness() as api, Client(LocalTransport(door(api.api, "a"))) as client:
        for duration, deadline, retry in ((10.0, 10.0, 2.0), (15.0, 2.0, 2.0), (15.9, 15.0, 2.0), (15.0, 10.0, 0.0)):
            terms = LeaseTerms(key=LEASE, identity="a", duration=duration, deadline=deadline, retry=retry)
            with pytest.raises(BadTerms):
                Election(client, terms, Machinery())


TROUBLE = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["cut", "mend", "slow", "quick", "stop", "crash", "start"]), st.integers(0, 25)),
    max_size=25,
)


@one_in(4)
@given(trouble=TROUBLE, skews=st.tuples(*[st.sampled_from([0.0, -1000.0, 1000.0])] * 3))
@run_by(virtualtime.run)
async def test_never_two_and_in_the_end_one(trouble: list[tuple[int, str, int]], skews: tuple[float, float, float]) -> None:
    """Three candidates, wires that break and slow down, stops and crashes at any time."""
    async with stage() as play:
        count = 0

        def start(number: int) -> tuple[Wire, asyncio.Task[None], Election]:
            nonlocal count
            count += 1
            return play.candidate(f"{number}-{count}", skew=skews[number], stubborn=3.0)

        players = [start(number) for number in range(3)]
        for number, what, seconds in trouble:
            wire, task, _ = players[number]
            if what in ("cut", "mend"):
                wire.broken = what == "cut"
            elif what in ("slow", "quick"):
                wire.delay = seconds / 4 if what == "slow" else 0.0
            elif what == "stop":
                task.cancel()
            elif what == "crash":
                wire.broken = True
                task.cancel()
            elif task.done():
                players[number] = start(number)
            await asyncio.sleep(seconds)
            assert len(play.acting) <= 1
        for number, (wire, task, _) in enumerate(players):
            wire.broken, wire.delay = False, 0.0
            if task.done():
                players[number] = start(number)
        await asyncio.sleep(120)
        assert (play.most, len(play.acting)) == (1, 1)
