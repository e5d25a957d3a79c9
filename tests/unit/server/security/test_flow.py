"""The shares of the server: classification, seats, fair turns, deadlines."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta.failure import Failure
from paddock.server.builtin import flowdefaults
from paddock.server.context import RequestContext, User
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.housekeeping import flows as chores
from paddock.server.routing import route
from paddock.server.security.deadlines import Deadlines
from paddock.server.security.flow import control, rules
from paddock.server.security.flow.control import FlowControl
from paddock.server.security.flow.levels import FlowQueue, Level, Levels, LevelTerms
from paddock.server.security.flow.metrics import MetricsEndpoint
from tests.coroutines import played_by
from tests.kit.servers.apiharness import Harness

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
MASTERS = User("admin", ("system:masters", "system:authenticated"))
ADA, BOB = (User(name, ("system:authenticated",)) for name in ("ada", "bob"))
ROBOT = User("system:serviceaccount:default:robot", ("system:serviceaccounts", "system:authenticated"))
SYSTEM = User("system:serviceaccount:kube-system:x", ("system:serviceaccounts", "system:authenticated"))
NODE = User("system:node:a", ("system:nodes", "system:authenticated"))
NOBODY = User("system:anonymous", ("system:unauthenticated",))
LEASE = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"
CLASSES = [
    (MASTERS, "GET", "/api/v1/pods", "exempt", "exempt", ""),
    (NOBODY, "GET", "/readyz", "probes", "exempt", ""),
    (NOBODY, "GET", "/version", "global-default", "global-default", "system:anonymous"),
    (ADA, "POST", "/api/v1/namespaces/a/pods", "global-default", "global-default", "ada"),
    (ROBOT, "GET", "/api/v1/pods", "service-accounts", "workload-low", ROBOT.name),
    (SYSTEM, "GET", "/api/v1/namespaces/a/pods", "kube-system-service-accounts", "workload-high", "a"),
    (SYSTEM, "PUT", LEASE, "system-leader-election", "leader-election", SYSTEM.name),
    (SYSTEM, "DELETE", LEASE, "kube-system-service-accounts", "workload-high", "a"),
    (NODE, "PATCH", "/api/v1/nodes/a/status", "system-node-high", "node-high", NODE.name),
    (NODE, "GET", "/api/v1/nodes/a/proxy", "system-nodes", "system", NODE.name),
    (User("system:kube-scheduler", ("system:authenticated",)), "GET", "/api/v1/pods", "kube-scheduler", "workload-high", ""),
    (User("x", ()), "GET", "/api/v1/pods", "", "", ""),
]


def asked(method: str, path: str) -> Any:
    return route(HttpRequest(method, path, {}, b"", ConnectionPeer("::1")))


@pytest.mark.parametrize(("user", "method", "path", "schema", "level", "distinguisher"), CLASSES)
def test_requests_belong_where_kubernetes_puts_them(
    user: User, method: str, path: str, schema: str, level: str, distinguisher: str
) -> None:
    known = rules.ordered(
        rules.schema_of({"metadata": {"name": name, "uid": name}, "spec": spec}) for name, spec in flowdefaults.SCHEMAS.items()
    )
    found = next((each for each in known if each.match(user, asked(method, path))), None)
    assert (found.name if found else "", found.level if found else "") == (schema, level)
    assert found is None or found.distinguisher(user, asked(method, path)) == distinguisher


def _levels(total: int, *terms: LevelTerms) -> Levels[int]:
    found: Levels[int] = Levels(total)
    found.set(terms)
    return found


def test_seats_are_shared_out_by_shares() -> None:
    found = _levels(
        100, LevelTerms("a", "", shares=1), LevelTerms("b", "", shares=3), LevelTerms("c", "", shares=0), LevelTerms("d", "", exempt=True)
    )
    assert {name: level.seats for name, level in found.known.items()} == {"a": 25, "b": 75, "c": 0, "d": 0}


def test_what_is_not_used_is_lent_and_what_is_wanted_is_there() -> None:
    found = _levels(20, LevelTerms("a", "", shares=1, lendable=50), LevelTerms("b", "", shares=1, borrowing=20))
    first, second = found.known["a"], found.known["b"]
    second.busy = 10
    assert found.has_seat(second), "half of the other level's seats may be borrowed"
    second.busy = 12
    assert not found.has_seat(second), "and no more than a fifth of its own"
    first.busy = 9
    assert found.has_seat(first), "its own seats it always has"
    second.busy = 10
    first.busy = 10
    assert not found.has_seat(second), "there is nothing to lend"
    assert not found.has_seat(first), "what is not lendable stays"


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_each_flow_has_its_turn(steps: list[tuple[int, bool]]) -> None:
    """For any number of waiters in one flow, another flow's first one waits for at most one request of each other flow."""
    level: Level[tuple[int, int]] = Level(LevelTerms("a", "", shares=1, waiting=20))
    flows = [FlowQueue(level, ()) for _ in range(4)]
    expected: list[list[tuple[int, int]]] = [[] for _ in flows]
    passed = [0] * 4
    for number, (index, is_taken) in enumerate(steps):
        assert level.wait(flows[index], (index, number)) is (len(expected[index]) < 20)
        if len(expected[index]) < 20:
            expected[index].append((index, number))
        if is_taken and level.waiting:
            flow, waiter = level.next()
            chosen = flows.index(flow)
            assert expected[chosen].pop(0) == waiter, "in a flow the first comes first"
            passed = [0 if each == chosen or not expected[each] else passed[each] + 1 for each in range(4)]
            assert max(passed) <= 3
    assert level.waiting == sum(map(len, expected))


def test_newcomers_and_those_who_are_served_already_take_turns_within_a_flow() -> None:
    level: Level[str] = Level(LevelTerms("a", "", shares=1, waiting=20))
    flow = FlowQueue(level, ())
    for waiter in ("a1", "a2", "N1", "N2", "a3", "N3", "N4"):
        assert level.wait(flow, waiter, newcomer=waiter.startswith("N"))
    level.leave(flow, "N4")
    assert [level.next()[1] for _ in range(6)] == ["N1", "a1", "N2", "a2", "N3", "a3"]
    assert (flow.waiting, level.waiting, len(level.queue)) == (0, 0, 0)


def play(script: Callable[[Harness], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with Harness() as api:
            await chores.ensure(api.parts)
            await script(api)

    asyncio.run(inside())


@played_by(play)
async def test_every_answer_names_its_schema_and_its_level(api: Harness, /) -> None:
    schema = (await api.get(f"{FLOWS}/flowschemas/exempt")).data["metadata"]["uid"]
    level = (await api.get(f"{FLOWS}/prioritylevelconfigurations/exempt")).data["metadata"]["uid"]
    for answer in (await api.get("/api/v1/pods"), await api.get("/api/v1/pods/none"), await api.get("/version")):
        assert (answer.headers[control._SCHEMA_HEADER], answer.headers[control._LEVEL_HEADER]) == (schema, level)


@played_by(play)
async def test_objects_steer_at_once(api: Harness, /) -> None:
    flows = FlowControl(api.store)
    assert flows.flow(ADA, asked("GET", "/api/v1/pods")).level.terms.name == "global-default"
    limited = {
        "nominalConcurrencyShares": 5,
        "limitResponse": {"type": "Queue", "queuing": {"queueLengthLimit": 1, "queues": 1, "handSize": 1}},
    }
    made = await api.post(
        f"{FLOWS}/prioritylevelconfigurations", {"metadata": {"name": "slow"}, "spec": {"type": "Limited", "limited": limited}}
    )
    assert made.status == 201, made.data
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "ada"}}],
        "resourceRules": [{"verbs": ["list"], "apiGroups": ["*"], "resources": ["pods"], "clusterScope": True, "namespaces": ["*"]}],
    }
    schema = {"matchingPrecedence": 50, "priorityLevelConfiguration": {"name": "slow"}, "rules": [rule]}
    made = await api.post(f"{FLOWS}/flowschemas", {"metadata": {"name": "slow"}, "spec": schema})
    assert made.status == 201, made.data
    assert flows.flow(ADA, asked("GET", "/api/v1/pods")).level.terms == LevelTerms(
        "slow", flows.levels.known["slow"].terms.uid, shares=5, waiting=1
    )
    assert flows.flow(BOB, asked("GET", "/api/v1/pods")).level.terms.name == "global-default"
    await api.delete(f"{FLOWS}/prioritylevelconfigurations/slow")
    assert flows.flow(ADA, asked("GET", "/api/v1/pods")).level.terms.name == "global-default"


@played_by(play)
async def test_what_a_request_says_at_length_is_not_kept(api: Harness, /) -> None:
    flows = FlowControl(api.store)
    for number in range(control._MOST_KEPT + 1):
        for path in (f"/{number}" + "x" * 5000, f"/api/v1/namespaces/{number}{'x' * 5000}/pods"):
            place = asked("GET", path)
            assert flows.flow(SYSTEM, place) is flows.flow(SYSTEM, place), "who asks twice waits in one queue"
    assert len(flows._kept) <= control._MOST_KEPT
    assert all(sum(len(text) for text in key if isinstance(text, str)) < 2000 for key in flows._kept)
    assert len(flows._flows) <= control._MOST_KEPT
    assert all(len(distinguisher) < 2000 for _, distinguisher in flows._flows)


async def _full(api: Harness, waiting: int, longest_wait: float = 15.0) -> FlowControl:
    """Control of a server with one level of one seat, which is taken by ada."""
    spec = {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queueLengthLimit": waiting}}}}
    for name in (*flowdefaults.LEVELS, *flowdefaults.SCHEMAS):
        await api.delete(f"{FLOWS}/prioritylevelconfigurations/{name}")
        await api.delete(f"{FLOWS}/flowschemas/{name}")
    await api.post(f"{FLOWS}/prioritylevelconfigurations", {"metadata": {"name": "only"}, "spec": spec})
    rules_of_all = {"subjects": [{"kind": "User", "user": {"name": "*"}}], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
    schema = {"priorityLevelConfiguration": {"name": "only"}, "distinguisherMethod": {"type": "ByUser"}, "rules": [rules_of_all]}
    made = await api.post(f"{FLOWS}/flowschemas", {"metadata": {"name": "only"}, "spec": schema})
    assert made.status == 201, made.data
    flows = FlowControl(api.store, 1, longest_wait)
    assert flows.enter(flows.flow(ADA, asked("GET", "/x")))
    return flows


@played_by(play)
async def test_who_asks_much_does_not_keep_others_waiting(api: Harness, /) -> None:
    flows = await _full(api, waiting=50)
    greedy, modest = flows.flow(ADA, asked("GET", "/x")), flows.flow(BOB, asked("GET", "/x"))
    served: list[str] = []

    async def ask(name: str, flow: control.Flow) -> None:
        assert not flows.enter(flow)
        await flows.wait(flow)
        served.append(name)
        await asyncio.sleep(0)
        flows.leave(flow)

    tasks = [asyncio.create_task(ask("greedy", greedy)) for _ in range(40)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(ask("modest", modest)))
    await asyncio.sleep(0)
    flows.leave(greedy)
    await asyncio.gather(*tasks)
    assert served.index("modest") <= 1
    level = greedy.level
    assert (level.busy, level.waiting) == (0, 0)


@played_by(play)
async def test_too_many_and_too_long_are_answered_429(api: Harness, /) -> None:
    flows = await _full(api, waiting=1, longest_wait=0.01)
    flow = flows.flow(ADA, asked("GET", "/x"))
    first = asyncio.create_task(flows.wait(flow))
    await asyncio.sleep(0)
    with pytest.raises(Failure) as surplus:
        await flows.wait(flow)
    with pytest.raises(Failure) as late:
        await first
    for said in (surplus.value, late.value):
        assert (said.code, said.reason, said.retry_after) == (429, "TooManyRequests", 1)
    assert (flow.level.refused, flow.level.waiting) == (2, 0)
    lines = (await MetricsEndpoint(flows).answer(HttpRequest("GET", "/metrics", {}, b"", ConnectionPeer("::1")), MASTERS)).body.decode()
    assert 'apiserver_flowcontrol_rejected_requests_total{priority_level="only"} 2\n' in lines
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="only"} 1\n' in lines


@played_by(play)
async def test_who_leaves_the_queue_takes_no_seat_with_them(api: Harness, /) -> None:
    flows = await _full(api, waiting=5)
    flow = flows.flow(ADA, asked("GET", "/x"))
    for is_granted in (False, True):
        task = asyncio.create_task(flows.wait(flow))
        await asyncio.sleep(0)
        if is_granted:
            flows.leave(flow)
            flows._round()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (flow.level.busy, flow.level.waiting) == (0, 0)


@played_by(play)
async def test_long_requests_do_not_follow_each_other_without_a_turn_for_others(api: Harness, /) -> None:
    """Lists that take long are sixty in a row; whoever comes then waits for one or two of them and not for all."""
    await chores.ensure(api.parts)
    clock = [0.0]
    flows = FlowControl(api.store, now=lambda: clock[0])
    order: list[str] = []

    async def ask(user: User, seconds: float) -> None:
        flow = flows.flow(user, asked("GET", "/api/v1/pods"))
        if not flows.enter(flow):
            await flows.wait(flow)
        order.append(user.name)
        clock[0] += seconds
        flows.leave(flow, seconds)

    tasks = [asyncio.create_task(ask(ADA, 0.1)) for _ in range(30)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(ask(BOB, 0.0001)))
    await asyncio.gather(*tasks)
    assert order.index("bob") <= 4, order


@pytest.mark.spec("kube-api", 162)
@pytest.mark.parametrize("newcomer", [MASTERS, BOB])
@played_by(play)
async def test_a_newcomer_beside_many_exempt_clients_waits_for_a_few_rounds(api: Harness, /, newcomer: User) -> None:
    """Each of 2,000 administrators asks again as soon as it is answered, which takes a millisecond; then somebody new comes."""
    clock = [0.0]
    flows = FlowControl(api.store, now=lambda: clock[0])
    longest = 0.0

    async def ask(user: User, *, is_first: bool = False) -> None:
        flow = flows.flow(user, asked("GET", "/api/v1/pods"))
        if not flows.enter(flow):
            await flows.wait(flow, newcomer=is_first)
        clock[0] += 0.001
        flows.leave(flow, 0.001)

    async def busy() -> None:
        while True:
            await ask(MASTERS)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(busy()) for _ in range(2000)]
    for _ in range(20):
        before = clock[0]
        await asyncio.sleep(0)
        longest = max(longest, clock[0] - before)
    before = clock[0]
    await ask(newcomer, is_first=True)
    assert clock[0] - before < 0.1, "its first request"
    assert longest < 0.1, "a turn of the loop, of which a handshake takes several"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@played_by(play)
async def test_exempt_requests_that_wait_are_not_refused(api: Harness, /) -> None:
    flows = FlowControl(api.store, 1, 0.001)
    flow = flows.flow(MASTERS, asked("GET", "/api/v1/pods"))
    waiting = [asyncio.create_task(flows.wait(flow)) for _ in range(1000)]
    await asyncio.gather(*waiting)
    assert (flow.level.refused, flow.level.busy, flow.level.waiting) == (0, 0, 0)


@played_by(play)
async def test_the_server_keeps_what_it_needs(api: Harness, /) -> None:
    house = chores.FlowSchemaStatusController(api.parts)
    house.start()
    await house.chores.settled()
    for kind in ("flowschemas", "prioritylevelconfigurations"):
        assert (await api.delete(f"{FLOWS}/{kind}/catch-all")).status == 200
    await house.chores.settled()
    schema = (await api.get(f"{FLOWS}/flowschemas/catch-all")).data
    assert [(each["type"], each["status"], each["reason"]) for each in schema["status"]["conditions"]] == [("Dangling", "False", "Found")]
    await api.delete(f"{FLOWS}/prioritylevelconfigurations/workload-low")
    await house.chores.settled()
    schema = (await api.get(f"{FLOWS}/flowschemas/service-accounts")).data
    assert schema["status"]["conditions"][0]["status"] == "True"
    for path in ("flowschemas/exempt", "prioritylevelconfigurations/catch-all"):
        changed = (await api.get(f"{FLOWS}/{path}")).data
        changed["spec"].update({"matchingPrecedence": 2} if "schemas" in path else {"type": "Exempt"})
        assert (await api.put(f"{FLOWS}/{path}", changed)).status == 422
    await house.chores.stop()


_RULE = {"subjects": [{"kind": "User", "user": {"name": "a"}}], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
_RESOURCE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"]}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("flowschemas", {"matchingPrecedence": 1}, "spec.matchingPrecedence"),
    ("flowschemas", {"matchingPrecedence": 10001}, "spec.matchingPrecedence"),
    ("flowschemas", {"matchingPrecedence": -1}, "spec.matchingPrecedence"),
    ("flowschemas", {"priorityLevelConfiguration": {"name": ""}}, "spec.priorityLevelConfiguration.name"),
    ("flowschemas", {"distinguisherMethod": {"type": "ByMood"}}, "spec.distinguisherMethod.type"),
    ("flowschemas", {"rules": [{**_RULE, "subjects": []}]}, "spec.rules[0].subjects"),
    ("flowschemas", {"rules": [{"subjects": _RULE["subjects"]}]}, "spec.rules[0]"),
    ("flowschemas", {"rules": [{**_RULE, "subjects": [{"kind": "Cat"}]}]}, "spec.rules[0].subjects[0].kind"),
    ("flowschemas", {"rules": [{**_RULE, "subjects": [{"kind": "Group"}]}]}, "spec.rules[0].subjects[0].group"),
    (
        "flowschemas",
        {"rules": [{**_RULE, "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"name": "a", "namespace": ""}}]}]},
        "spec.rules[0].subjects[0].serviceAccount.namespace",
    ),
    (
        "flowschemas",
        {"rules": [{**_RULE, "resourceRules": [{**_RESOURCE, "verbs": ["*", "get"]}]}]},
        "spec.rules[0].resourceRules[0].verbs",
    ),
    ("flowschemas", {"rules": [{**_RULE, "resourceRules": [{**_RESOURCE, "verbs": ["eat"]}]}]}, "spec.rules[0].resourceRules[0].verbs"),
    (
        "flowschemas",
        {"rules": [{**_RULE, "resourceRules": [{**_RESOURCE, "namespaces": []}]}]},
        "spec.rules[0].resourceRules[0].namespaces",
    ),
    (
        "flowschemas",
        {"rules": [{**_RULE, "resourceRules": [{**_RESOURCE, "namespaces": ["A"]}]}]},
        "spec.rules[0].resourceRules[0].namespaces[0]",
    ),
    (
        "flowschemas",
        {"rules": [{**_RULE, "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["x"]}]}]},
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]",
    ),
    ("prioritylevelconfigurations", {"type": "Exempt"}, "spec.type"),
    ("prioritylevelconfigurations", {"type": "Limited"}, "spec.limited"),
    ("prioritylevelconfigurations", {"type": "Odd"}, "spec.type"),
    ("prioritylevelconfigurations", {"type": "Limited", "limited": {}, "exempt": {}}, "spec.exempt"),
    ("prioritylevelconfigurations", {"type": "Limited", "limited": {"limitResponse": {"type": "Odd"}}}, "spec.limited.limitResponse.type"),
    (
        "prioritylevelconfigurations",
        {"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}},
        "spec.limited.limitResponse.queuing",
    ),
    (
        "prioritylevelconfigurations",
        {"type": "Limited", "limited": {"limitResponse": {"type": "Reject", "queuing": {}}}},
        "spec.limited.limitResponse.queuing",
    ),
    (
        "prioritylevelconfigurations",
        {"type": "Limited", "limited": {"lendablePercent": 101, "limitResponse": {"type": "Reject"}}},
        "spec.limited.lendablePercent",
    ),
    (
        "prioritylevelconfigurations",
        {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}}},
        "spec.limited.limitResponse.queuing.handSize",
    ),
]


@pytest.mark.parametrize(("plural", "spec", "field"), WRONG)
@played_by(play)
async def test_what_cannot_be_honoured_is_refused(api: Harness, /, plural: str, spec: dict[str, Any], field: str) -> None:
    whole = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": [_RULE], **spec} if plural == "flowschemas" else spec
    answer = await api.post(f"{FLOWS}/{plural}", {"metadata": {"name": "a"}, "spec": whole})
    assert answer.status == 422, answer.data
    assert field in answer.causes, answer.causes


async def _sleep(call: RequestContext) -> HttpResponse:
    await asyncio.sleep(3600)
    raise AssertionError


@pytest.mark.parametrize(
    ("path", "longest"),
    [("/api/v1/namespaces/default/configmaps?timeout=10ms", 60.0), ("/api/v1/namespaces/default/configmaps?timeout=1h", 0.01)],
)
@played_by(play)
async def test_what_takes_too_long_is_ended(api: Harness, /, path: str, longest: float) -> None:
    api.api._deadlines = Deadlines(longest)
    api.api.subresources["", "configmaps", "", "list"] = _sleep
    answer = await api.get(path)
    assert (answer.status, answer.reason) == (504, "Timeout")
    # The task that was cancelled goes on to serve its connection.
    assert (await api.get("/version")).status == 200
    await asyncio.sleep(0.03)
    assert (await api.get("/version")).status == 200


@played_by(play)
async def test_a_deadline_that_is_none_is_a_bad_request(api: Harness, /) -> None:
    assert (await api.get("/api/v1/pods?timeout=soon")).status == 400
    assert (await api.get("/api/v1/pods?timeout=32s")).status == 200
    async with api.watch("/api/v1/pods?watch=1&timeout=soon"):
        pass
