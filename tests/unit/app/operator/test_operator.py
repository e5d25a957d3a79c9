"""An operator against the server in memory, with its pages on loopback, in virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import orjson
import pytest

from paddock.app import localtransport
from paddock.app.operator import neededrights
from paddock.app.operator.definitions import ForeignDefinition
from paddock.app.operator.operator import Operator
from paddock.app.operator.settings import LeaderElectionSettings, ListenAddress, OperatorSettings
from paddock.base.errors import Terminal
from paddock.dialects import fronts
from paddock.dialects.fronts import FrontSettings
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.client.transport import TransportRequest
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.kit.servers import apiclient
from tests.kit.servers.apiharness import GuardedHarness, Harness

GADGETS = plain("example.com", "v1", "gadgets", "Gadget")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLACE = "/apis/example.com/v1/namespaces/default/gadgets"
SOMEWHERE = ListenAddress("127.0.0.1", 0)
SETTINGS = OperatorSettings(
    fronts=FrontSettings(wanted=frozenset({"gadgets"})),
    metrics=SOMEWHERE,
    health=ListenAddress("127.0.0.2", 0),
    namespace="default",
    lease=LeaderElectionSettings(name="l"),
)
RULES: dict[str, list[dict[str, Any]]] = {
    "gadgets": [{"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["list", "watch", "patch"]}],
    "gizmos": [],
    "leases": neededrights.rules("leases"),
}
DEFINITION = {
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(autouse=True)
def gadgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A front door that writes the name of whoever looked at an object onto it."""

    def wire(program: ControllerManager, fronts: FrontSettings, front: ControllerManager) -> None:
        async def look(key: Key) -> Outcome:
            seen = informer.cache.get(key)
            if seen is not None and "seen-by" not in (seen.meta.labels or {}):
                await program.client.patch(GADGETS, key, merge_patch({"metadata": {"labels": {"seen-by": "us"}}}))
            return DONE

        informer = program.informers.of(GADGETS)
        program.informers.of(plain("example.com", "v1", "extras", "Extra"), optional=True)
        program.add(Controller("Gadget", informer, look, machinery=program.machinery))

    monkeypatch.setattr(fronts, "WIRES", {"gadgets": wire})
    monkeypatch.setattr(neededrights, "rules", RULES.__getitem__)


class World:
    def __init__(self, api: Harness) -> None:
        self.api = api

    @asynccontextmanager
    async def operator(self, settings: OperatorSettings = SETTINGS, identity: str = "one") -> AsyncIterator["Pages"]:
        """One that runs until the block ends."""
        async with apiclient.inside(self.api) as client:
            machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
            operator = Operator(settings, client, machinery, identity=identity)
            task = asyncio.create_task(operator.run())
            await asyncio.sleep(1)
            try:
                yield Pages(operator, task)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def lease(self, dialect: str = "gadgets") -> str:
        reply = await self.api.get(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/l-{dialect}")
        return str(reply.data.get("spec", {}).get("holderIdentity", ""))


class Pages:
    def __init__(self, operator: Operator, task: "asyncio.Task[None]") -> None:
        self.operator = operator
        self.task = task

    async def get(self, path: str, *, metrics: bool = False) -> tuple[int, str]:
        settings, ports = self.operator._settings, self.operator.ports
        address, port = (settings.metrics, ports[0]) if metrics else (settings.health, ports[1])
        assert address is not None
        client = Https(Access(server=f"http://{address.host}:{port}", credentials=StaticCredential()))
        reply = await client.send(TransportRequest(method="GET", target=path))
        await client.close()
        return reply.status, reply.body.decode()


def play(script: Callable[[World], Awaitable[Any]]) -> None:
    async def inside() -> None:
        async with Harness() as api:
            await script(World(api))

    virtualtime.run(inside())


@pytest.mark.spec("vitistack", 75)
@played_by(play)
async def test_pages(world: World, /) -> None:
    async with world.operator() as pages:
        assert (await pages.get("/healthz"))[0] == 200
        status, text = await pages.get("/readyz")
        assert status == 500
        assert "[-]definitions gadgets.example.com/v1 is not served: install what serves example.com" in text
        assert "[-]caches waiting for gadgets.example.com (not started)" in text
        assert (await world.api.post(CRDS, DEFINITION)).status == 201
        await asyncio.sleep(10)
        status, text = await pages.get("/readyz")
        assert (status, text) == (200, "[+]caches ok\n[+]definitions ok\n[+]election ok\n[+]program ok\n[+]rights ok\nok\n")
        assert (await pages.get("/healthz"))[0] == 200
        status, text = await pages.get("/metrics", metrics=True)
        assert status == 200 and 'paddock_leader{lease="default/l-gadgets"} 1\n' in text
        # Each page has its port.
        assert (await pages.get("/metrics"))[0] == 404
        assert (await pages.get("/readyz", metrics=True))[0] == 404
        # A kind that goes is missed.
        await world.api.delete(f"{CRDS}/gadgets.example.com")
        await asyncio.sleep(60)
        status, text = await pages.get("/readyz")
        assert (status, text.splitlines()[0]) == (500, "[-]caches waiting for gadgets.example.com (the server does not serve it)")
        assert (await pages.get("/healthz"))[0] == 200


@played_by(play)
async def test_pages_that_share_an_address_or_are_not_wanted(world: World, /) -> None:
    async with world.operator(msgspec.structs.replace(SETTINGS, health=SOMEWHERE)) as pages:
        assert pages.operator.ports[0] == pages.operator.ports[1]
        assert (await pages.get("/metrics"))[0] == (await pages.get("/healthz"))[0] == 200
        taken = ListenAddress("127.0.0.1", pages.operator.ports[0] or 0)
        async with world.operator(msgspec.structs.replace(SETTINGS, metrics=taken, health=None)) as other:
            assert isinstance(other.task.exception(), Terminal)
            assert "choose another address with METRICS_BIND_ADDRESS" in str(other.task.exception())
    async with world.operator(msgspec.structs.replace(SETTINGS, metrics=None, health=None)) as pages:
        assert pages.operator.ports == (None, None)
        assert not pages.task.done()


@played_by(play)
async def test_one_of_two_acts_and_the_other_follows_when_it_ends(world: World, /) -> None:
    await world.api.post(CRDS, DEFINITION)
    async with world.operator(identity="second-to-start") as late, world.operator(identity="other") as early:
        await asyncio.sleep(30)
        assert [each.operator.program.leading for each in (late, early)] == [True, False]
        # Who does not lead is ready to.
        assert (await early.get("/readyz"))[0] == 200
        late.task.cancel()
        await asyncio.gather(late.task, return_exceptions=True)
        # It gave the lease back, so that nobody waits for its end.
        await asyncio.sleep(5)
        assert await world.lease() == "other"
        await world.api.post(PLACE, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}})
        await asyncio.sleep(1)
        assert (await world.api.get(f"{PLACE}/a")).data["metadata"]["labels"] == {"seen-by": "us"}


@played_by(play)
async def test_without_election_there_is_no_lease(world: World, /) -> None:
    await world.api.post(CRDS, DEFINITION)
    settings = msgspec.structs.replace(SETTINGS, lease=LeaderElectionSettings(wanted=False, name="l"))
    async with world.operator(settings) as pages:
        await asyncio.sleep(5)
        assert pages.operator.program.leading
        assert await world.lease() == ""
        assert "election" not in (await pages.get("/readyz"))[1]


@played_by(play)
async def test_a_lease_that_cannot_be_written_is_a_reason_not_to_be_ready(world: World, /) -> None:
    await world.api.post(CRDS, DEFINITION)
    async with world.operator(msgspec.structs.replace(SETTINGS, namespace="nowhere")) as pages:
        await asyncio.sleep(5)
        status, text = await pages.get("/readyz")
        assert status == 500 and "[-]election " in text and 'namespaces "nowhere" not found' in text


@patch("paddock.app.operator.definitions.FRONT_GROUPS", {"example.com": "gadgets"})
@played_by(play)
async def test_a_definition_of_crossplane_ends_it(world: World, /) -> None:
    await world.api.post(CRDS, DEFINITION)
    owner = {"apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "name": "xgadgets", "uid": "1"}
    changed = await world.api.merge(f"{CRDS}/gadgets.example.com", {"metadata": {"ownerReferences": [owner]}})
    assert changed.status == 200, orjson.dumps(changed.data)
    async with world.operator() as pages:
        problem = pages.task.exception()
        assert isinstance(problem, ForeignDefinition)
        assert str(problem).startswith("cannot look after gadgets.example.com: its definition belongs to CompositeResourceDefinition")
        assert await world.lease() == ""


def test_operators_exclude_each_other_in_the_dialects_that_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """One has both dialects, the other one of them: it stands by for that one, and takes it over alone."""
    controlled: dict[str, set[str]] = {"one": set(), "two": set()}
    programs: list[ControllerManager] = []

    def wire_as(dialect: str) -> fronts.Wire:
        def wire(program: ControllerManager, settings: FrontSettings, front: ControllerManager) -> None:
            if program not in programs:
                programs.append(program)
            # The operators are made in this order.
            identity = "one" if program is programs[0] else "two"

            async def look(key: Key) -> Outcome:
                controlled[identity].add(dialect)
                return DONE

            informer = program.informers.of(GADGETS)
            program.add(Controller(f"{dialect}-{identity}", informer, look, machinery=program.machinery))

        return wire

    monkeypatch.setattr(fronts, "WIRES", {each: wire_as(each) for each in ("gadgets", "gizmos")})

    def wanting(*dialects: str) -> OperatorSettings:
        return msgspec.structs.replace(SETTINGS, fronts=FrontSettings(wanted=frozenset(dialects)))

    async def script(world: World) -> None:
        await world.api.post(CRDS, DEFINITION)
        await world.api.post(PLACE, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}})
        async with world.operator(wanting("gadgets"), "one") as one:
            await asyncio.sleep(10)
            async with world.operator(wanting("gadgets", "gizmos"), "two") as two:
                await asyncio.sleep(30)
                assert controlled == {"one": {"gadgets"}, "two": {"gizmos"}}
                assert [await world.lease(each) for each in ("gadgets", "gizmos")] == ["one", "two"]
                # Who waits for one dialect is ready, and acts in the other.
                assert (await two.get("/readyz"))[0] == 200
                leads = [two.operator.program.leading]
                one.task.cancel()
                await asyncio.gather(one.task, return_exceptions=True)
                await asyncio.sleep(10)
                leads.append(two.operator.program.leading)
                assert leads == [False, True]
                assert controlled["two"] == {"gadgets", "gizmos"}

    play(script)


LACKING = (
    "cannot patch gadgets.example.com at the cluster scope, which gadgets needs: "
    'grant the operator the verb "patch" on gadgets of API group "example.com" with a ClusterRole'
)
REVIEWS = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]


@run_by(virtualtime.run)
async def test_a_right_that_is_missing_is_named_until_it_is_granted(tmp_path: Path) -> None:
    """The operator is a user with rights of its own, and lacks one."""
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    root = {"authorization": "Bearer root"}
    rules = [
        {"apiGroups": ["example.com"], "resources": ["gadgets", "extras"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": REVIEWS, "verbs": ["create"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    async with GuardedHarness(tmp_path) as api:
        assert (await api.post(CRDS, DEFINITION, **root)).status == 201
        assert (await api.post(role, {"metadata": {"name": "operator"}, "rules": rules}, **root)).status == 201
        subject = {"kind": "User", "name": "operator", "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "ClusterRole", "name": "operator", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": "operator"}, "roleRef": reference, "subjects": [subject]}
        assert (await api.post(f"{role}bindings".replace("roles", "role"), binding, **root)).status == 201
        gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}
        assert (await api.post(PLACE, gadget, **root)).status == 201
        async with Client(LocalTransport(localtransport.door(api.api, "operator", ()))) as client:
            operator = Operator(SETTINGS, client, Machinery(clock=virtualtime.Clock(), chance=random.Random(1)), identity="one")
            task = asyncio.create_task(operator.run())
            await asyncio.sleep(20)
            pages = Pages(operator, task)
            status, text = await pages.get("/readyz")
            assert status == 500
            # The refusal in the namespace of the object adds nothing to it.
            assert "[-]rights " + LACKING + "\n" in text
            rules[0]["verbs"].append("patch")
            assert (await api.put(f"{role}/operator", {"metadata": {"name": "operator"}, "rules": rules}, **root)).status == 200
            await asyncio.sleep(6)
            assert (await pages.get("/readyz"))[0] == 200
            # A right that is cut later is named before anything needs it.
            rules[0]["verbs"].remove("patch")
            assert (await api.put(f"{role}/operator", {"metadata": {"name": "operator"}, "rules": rules}, **root)).status == 200
            await asyncio.sleep(65)
            assert "[-]rights " + LACKING + "\n" in (await pages.get("/readyz"))[1]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
