"""Rights: our decision against the naivest reading of the rules, against the reviews, and what nobody can give away."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from paddock.server.context import User
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.housekeeping import bootstrap
from paddock.server.housekeeping.aggregation import RoleAggregationController
from paddock.server.routing import route
from paddock.server.security.guard import attributes
from tests.coroutines import played_by, run_by
from tests.kit.servers.apiharness import GuardedHarness, Reply

Rule = dict[str, list[str]]
ROOT = {"authorization": "Bearer root"}
ADA = {"authorization": "Bearer ada"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCESS = "/apis/authorization.k8s.io/v1"


def play(folder: Path, script: Callable[[GuardedHarness], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with GuardedHarness(folder) as api:
            await script(api)

    asyncio.run(inside())


async def give(
    api: GuardedHarness, name: str, subject: Any, rules: list[Rule], namespace: str = "", *, as_cluster_role: bool = False
) -> None:
    """Bind rules to somebody, everywhere or in a namespace, there by a Role or a ClusterRole."""
    kind = "ClusterRole" if not namespace or as_cluster_role else "Role"
    place = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    roles = f"{RBAC}/clusterroles" if kind == "ClusterRole" else f"{place}/roles"
    made = await api.post(roles, {"metadata": {"name": name}, "rules": rules}, **ROOT)
    assert made.status == 201, made.data
    who = {"kind": "User", "name": subject} if isinstance(subject, str) else subject
    binding = {"metadata": {"name": name}, "roleRef": {"kind": kind, "name": name}, "subjects": [who]}
    made = await api.post(f"{place}/{'rolebindings' if namespace else 'clusterrolebindings'}", binding, **ROOT)
    assert made.status == 201, made.data


@pytest.mark.spec("kube-api", 2, "without credentials")
@played_by(play, "tmp_path")
async def test_health_asks_nobody_who_it_is(api: GuardedHarness, /) -> None:
    await bootstrap.ensure(api.parts)
    for path in ("/healthz", "/livez", "/readyz"):
        said = await api.get(path)
        assert (said.status, said.raw) == (200, b"ok"), path
    for path in ("/metrics", "/api/v1/nodes"):
        assert (await api.get(path)).status in (401, 403), path


# --- item 121: decisions ------------------------------------------------------------------------------------------------------

VERBS, GROUPS, NAMES = ("get", "list", "create", "delete"), ("", "a.b"), ("one", "two")
RESOURCES, SUBS, PATHS = ("pods", "secrets"), ("", "log", "status"), ("/healthz", "/healthz/x", "/version")


def some(*words: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=2, unique=True)


_plurals = some(*RESOURCES, "pods/log", "pods/status", "*/log", "*")
_resource_rules = st.fixed_dictionaries(
    {"verbs": some(*VERBS, "*"), "apiGroups": some(*GROUPS, "*"), "resources": _plurals}, optional={"resourceNames": some(*NAMES)}
)
_path_rules = st.fixed_dictionaries({"verbs": some(*VERBS, "*"), "nonResourceURLs": some(*PATHS, "/healthz*", "/health*", "*")})
_anybody = st.sampled_from(
    [
        {"kind": "User", "name": "ada"},
        {"kind": "User", "name": "bob"},
        {"kind": "Group", "name": "dev"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "n"},
    ]
)
_grants = st.lists(
    st.tuples(
        _anybody, st.lists(st.one_of(_resource_rules, _path_rules), min_size=1, max_size=3), st.sampled_from(["", "n", "m"]), st.booleans()
    ),
    max_size=4,
)
_users = st.sampled_from(
    [
        ("ada", ("system:authenticated",)),
        ("ada", ("dev", "system:authenticated")),
        ("bob", ("system:authenticated",)),
        ("system:serviceaccount:n:robot", ("system:serviceaccounts",)),
        ("system:serviceaccount:m:robot", ("system:serviceaccounts",)),
    ]
)
_questions = st.one_of(
    st.tuples(
        st.sampled_from(VERBS),
        st.sampled_from(GROUPS),
        st.sampled_from(RESOURCES),
        st.sampled_from(SUBS),
        st.sampled_from(("", *NAMES)),
        st.sampled_from(("", "n", "m")),
    ),
    st.tuples(st.sampled_from(VERBS), st.sampled_from(PATHS)),
)


def rule_allows(rule: Any, question: tuple[str, ...]) -> bool:
    """Return the verdict of a rule by its words alone."""
    if question[0] not in rule["verbs"] and "*" not in rule["verbs"]:
        return False
    if len(question) == 2:
        urls = rule.get("nonResourceURLs", [])
        return any(url == question[1] or (url.endswith("*") and question[1].startswith(url[:-1])) for url in urls)
    _, group, plural, sub, name, _ = question
    if group not in rule.get("apiGroups", []) and "*" not in rule.get("apiGroups", []):
        return False
    fitting = ["*", f"{plural}/{sub}", f"*/{sub}"] if sub else ["*", plural]
    if not any(word in fitting for word in rule.get("resources", [])):
        return False
    return "resourceNames" not in rule or name in rule["resourceNames"]


def naive(grants: Any, user: str, groups: tuple[str, ...], question: tuple[str, ...]) -> bool:
    """Return whether any grant that reaches the user, and the place, has a rule that allows it."""
    for subject, rules, namespace, _ in grants:
        mine = {
            "User": subject["name"] == user,
            "Group": subject["name"] in groups,
            "ServiceAccount": user == f"system:serviceaccount:{subject.get('namespace')}:{subject['name']}",
        }[subject["kind"]]
        reaches = not namespace or (len(question) == 6 and question[5] == namespace)
        for rule in rules if mine and reaches else []:
            # Rules about paths mean nothing in a namespace.
            if rule_allows(rule, question):
                return True
    return False


def review(question: tuple[str, ...]) -> dict[str, Any]:
    if len(question) == 2:
        return {"nonResourceAttributes": {"verb": question[0], "path": question[1]}}
    keys = ("verb", "group", "resource", "subresource", "name", "namespace")
    return {"resourceAttributes": dict(zip(keys, question, strict=True))}


@pytest.mark.spec("kube-api", 121)
@pytest.mark.hypothesis
@settings(
    max_examples=max(15, settings().max_examples // 10), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@example(
    grants=[({"kind": "User", "name": "ada"}, [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}], "n", True)],
    who=("ada", ("system:authenticated",)),
    questions=[("get", "/healthz")],
)
@example(
    grants=[
        ({"kind": "User", "name": "ada"}, [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["one"]}], "", False)
    ],
    who=("ada", ("system:authenticated",)),
    questions=[("get", "", "pods", "log", name, "n") for name in ("", *NAMES)],
)
@given(grants=_grants, who=_users, questions=st.lists(_questions, min_size=10, max_size=20))
@played_by(play, "tmp_path")
async def test_decisions_are_those_of_the_rules(api: GuardedHarness, /, grants: Any, who: Any, questions: Any) -> None:
    """The door, the reviews that kubectl auth can-i asks, and the list of rules say the same, and it is what the rules say."""
    user, groups = who
    await api.namespace("n")
    await api.namespace("m")
    everybody = {"kind": "Group", "name": "system:authenticated"}
    asking = [{"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["*"]}]
    await give(api, "ask", everybody, asking)
    for number, (subject, rules, namespace, as_cluster_role) in enumerate(grants):
        paths = [rule for rule in rules if "nonResourceURLs" in rule]
        if namespace and not as_cluster_role and paths:
            continue
        await give(api, f"g{number}", subject, rules, namespace, as_cluster_role=as_cluster_role)
    held = [each for each in grants if not (each[2] and not each[3] and any("nonResourceURLs" in rule for rule in each[1]))]
    acting = {"impersonate-user": user, **({"impersonate-group": groups[0]} if groups[0] == "dev" else {})}
    listed = await _listed(api, acting, ("n", "m"))
    for question in questions:
        expected = naive(held, user, groups, question)
        spec = {**review(question), "user": user, "groups": list(groups)}
        asked = await api.post(f"{ACCESS}/subjectaccessreviews", {"spec": spec}, **ROOT)
        assert asked.data["status"]["allowed"] is expected, (question, asked.data)
        own = await api.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": review(question)}, **ROOT, **acting)
        assert own.data["status"]["allowed"] is expected
        for namespace, rules in listed.items():
            if len(question) == 2 or question[5] == namespace:
                assert any(rule_allows(rule, question) for rule in rules) is expected, (namespace, question, rules)


async def _listed(api: GuardedHarness, acting: dict[str, str], namespaces: tuple[str, ...]) -> dict[str, list[Any]]:
    """The rules that the server lists, by namespace."""
    found = {}
    for namespace in namespaces:
        answer = await api.post(f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}}, **ROOT, **acting)
        assert answer.status == 201, answer.data
        status = answer.data["status"]
        assert status["incomplete"] is False
        found[namespace] = [rule for rule in status["resourceRules"] if rule["apiGroups"] != ["authorization.k8s.io"]] + status[
            "nonResourceRules"
        ]
    return found


DOORS = [
    ("GET", "/api/v1/namespaces/n/pods/one/log", ("get", "", "pods", "log", "one", "n")),
    ("GET", "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Done", ("list", "", "pods", "", "one", "n")),
    ("GET", "/api/v1/pods?watch=1", ("watch", "", "pods", "", "", "")),
    ("DELETE", "/api/v1/namespaces/n/pods", ("deletecollection", "", "pods", "", "", "n")),
    ("POST", "/apis/a.b/v1/namespaces/n/things", ("create", "a.b", "things", "", "", "n")),
    ("PUT", "/api/v1/namespaces/n/finalize", ("update", "", "namespaces", "finalize", "n", "n")),
    ("GET", "/api/v1/namespaces/n", ("get", "", "namespaces", "", "n", "n")),
    ("PATCH", "/api/v1/nodes/x/status", ("patch", "", "nodes", "status", "x", "")),
    ("HEAD", "/version", ("get", "/version")),
]


@pytest.mark.parametrize(("method", "target", "expected"), DOORS)
def test_a_request_asks_for_what_it_does(method: str, target: str, expected: tuple[str, ...]) -> None:
    request = HttpRequest(method, target, {}, b"", ConnectionPeer("::1"))
    found = attributes(request, route(request), User("ada"))
    said = (found.verb, found.group, found.resource, found.subresource, found.name, found.namespace)
    assert (said if found.is_resource else (found.verb, found.path)) == expected


# --- item 120: what cannot be given away --------------------------------------------------------------------------------------

EVERYTHING = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
MANAGE = [{"verbs": ["create", "update", "get"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}]
SECRETS = [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]


async def _role(api: GuardedHarness, rules: list[Rule], *, method: str = "POST", **more: Any) -> Reply:
    path = f"{RBAC}/clusterroles" if method == "POST" else f"{RBAC}/clusterroles/given"
    return await api.call(method, path, {"metadata": {"name": "given"}, "rules": rules, **more}, **ADA)


async def _binding(api: GuardedHarness, role: str = "given") -> Reply:
    body = {"metadata": {"name": "given"}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": "bob"}]}
    return await api.post(f"{RBAC}/clusterrolebindings", body, **ADA)


@pytest.mark.spec("kube-api", 120)
@run_by(asyncio.run)
async def test_nobody_gives_away_what_they_do_not_have(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    async with GuardedHarness(tmp_path / "a") as api:
        await give(api, "manage", "ada", MANAGE)
        refused = await _role(api, SECRETS)
        assert (refused.status, refused.reason) == (403, "Forbidden")
        assert 'user "ada" is attempting to grant RBAC permissions not currently held' in refused.data["message"]
        assert (await _role(api, MANAGE)).status == 201
        assert (await _role(api, [*MANAGE, *SECRETS], method="PUT")).status == 403
        assert (await _binding(api)).status == 201
        await give(api, "secrets", "carl", SECRETS)
        for role in ("secrets", "none"):
            assert (await _binding(api, role)).status == 403
        chosen = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
        assert (await _role(api, MANAGE, method="PUT", **chosen)).status == 403, "what it would collect nobody knows"
        await give(
            api,
            "escalate",
            "ada",
            [{"verbs": ["escalate", "bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}],
        )
        assert (await _role(api, SECRETS, method="PUT")).status == 200
        assert (await _role(api, [], method="PUT", **chosen)).status == 200
        await api.delete(f"{RBAC}/clusterrolebindings/given", **ROOT)
        assert (await _binding(api, "secrets")).status == 201
        binding = (await api.get(f"{RBAC}/clusterrolebindings/given", **ROOT)).data
        moved = await api.put(f"{RBAC}/clusterrolebindings/given", {**binding, "roleRef": {**binding["roleRef"], "name": "manage"}}, **ROOT)
        assert (moved.status, moved.causes) == (422, {"roleRef": moved.causes["roleRef"]})
        assert "cannot change roleRef" in moved.causes["roleRef"]
    (tmp_path / "b").mkdir()
    async with GuardedHarness(tmp_path / "b") as api:
        await _aggregated(api)


async def _aggregated(api: GuardedHarness) -> None:
    """A role made of others follows their labels: when they come, change and go."""
    keeper = RoleAggregationController(api.parts)
    keeper.start()

    async def rules() -> Any:
        await keeper.chores.settled()
        return (await api.get(f"{RBAC}/clusterroles/sum", **ROOT)).data["rules"]

    async def member(name: str, labels: dict[str, str], rule: Any, *, there: bool = False) -> None:
        body = {"metadata": {"name": name, "labels": labels}, "rules": rule}
        path = f"{RBAC}/clusterroles"
        done = await (api.put(f"{path}/{name}", body, **ROOT) if there else api.post(path, body, **ROOT))
        assert done.status in (200, 201), done.data

    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "sum"}}, {"matchExpressions": [{"key": "also", "operator": "Exists"}]}]}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "sum"}, "aggregationRule": selector, "rules": MANAGE}, **ROOT)
    await member("first", {"to": "sum"}, SECRETS)
    assert await rules() == SECRETS
    await member("second", {"also": ""}, MANAGE)
    assert await rules() == [*SECRETS, *MANAGE]
    await member("first", {"to": "sum"}, EVERYTHING[:1], there=True)
    assert await rules() == [*EVERYTHING[:1], *MANAGE]
    await member("first", {"to": "nobody"}, EVERYTHING[:1], there=True)
    assert await rules() == MANAGE
    await api.delete(f"{RBAC}/clusterroles/second", **ROOT)
    assert not await rules()
    await keeper.chores.stop()


# --- acting for others --------------------------------------------------------------------------------------------------------

ACTING: list[tuple[Rule | None, dict[str, str], str]] = [
    (None, {"impersonate-user": "bob"}, 'cannot impersonate resource "users"'),
    ({"resources": ["users"]}, {"impersonate-user": "bob"}, ""),
    ({"resources": ["users"], "resourceNames": ["carl"]}, {"impersonate-user": "bob"}, 'cannot impersonate resource "users"'),
    ({"resources": ["users"]}, {"impersonate-user": "bob", "impersonate-group": "dev"}, 'cannot impersonate resource "groups"'),
    ({"resources": ["users", "groups"]}, {"impersonate-user": "bob", "impersonate-group": "dev"}, ""),
    ({"resources": ["users"]}, {"impersonate-user": "bob", "impersonate-uid": "7"}, 'cannot impersonate resource "uids"'),
    ({"resources": ["users", "uids"]}, {"impersonate-user": "bob", "impersonate-uid": "7"}, ""),
    ({"resources": ["users"]}, {"impersonate-user": "bob", "impersonate-extra-why": "x"}, 'cannot impersonate resource "userextras/why"'),
    ({"resources": ["users", "userextras/why"]}, {"impersonate-user": "bob", "impersonate-extra-why": "x"}, ""),
    ({"resources": ["users"]}, {"impersonate-user": "system:serviceaccount:n:robot"}, 'cannot impersonate resource "serviceaccounts"'),
    ({"resources": ["serviceaccounts"]}, {"impersonate-user": "system:serviceaccount:n:robot"}, ""),
    ({"resources": ["groups"]}, {"impersonate-group": "dev"}, "requested impersonation without impersonating a user"),
]


@pytest.mark.parametrize(("rule", "headers", "refusal"), ACTING)
@played_by(play, "tmp_path")
async def test_each_part_of_somebody_needs_a_right(
    api: GuardedHarness, /, rule: Rule | None, headers: dict[str, str], refusal: str
) -> None:
    if rule is not None:
        await give(api, "act", "ada", [{"verbs": ["impersonate"], "apiGroups": ["", "authentication.k8s.io"], **rule}])
    everybody = {"kind": "Group", "name": "system:authenticated"}
    await give(api, "who", everybody, [{"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}])
    answer = await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, **ADA, **headers)
    if refusal:
        assert answer.status in (400, 403)
        assert refusal in answer.data["message"]
    else:
        info = answer.data["status"]["userInfo"]
        assert info["username"] == headers["impersonate-user"]
        assert info.get("uid", "") == headers.get("impersonate-uid", "")
        assert info.get("extra", {}) == ({"why": ["x"]} if "impersonate-extra-why" in headers else {})
        own = ["system:serviceaccounts", "system:serviceaccounts:n"] if "robot" in info["username"] else []
        assert info["groups"] == [
            *own,
            *([headers["impersonate-group"]] if "impersonate-group" in headers else []),
            "system:authenticated",
        ]


@played_by(play, "tmp_path")
async def test_values_with_commas_and_encoded_names_arrive_as_they_were_sent(api: GuardedHarness, /) -> None:
    headers = {
        "authorization": "Bearer root",
        "impersonate-user": "system:anonymous",
        "impersonate-group": "cn=a,dc=b, dev",
        "impersonate-extra-example.org%2fwhy": "x",
    }
    request = HttpRequest("GET", "/version", headers, b"", ConnectionPeer("::1"))
    request.repeated = {"impersonate-group": ["cn=a,dc=b", "dev"]}
    user = api.api._guard.identify(request)
    assert user.groups == ("cn=a,dc=b", "dev", "system:unauthenticated")
    assert user.extra == {"example.org/why": ("x",)}
    assert isinstance(await api.api(request), HttpResponse)


@played_by(play, "tmp_path")
async def test_a_right_that_was_used_goes_at_once(api: GuardedHarness, /) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
    await give(api, "all", "ada", [rule], "default")
    await give(api, "one", "ada", [{**rule, "resources": ["secrets"], "resourceNames": ["one"]}], "default")
    place = "/api/v1/namespaces/default"

    async def codes() -> list[int]:
        return [(await api.get(f"{place}/{name}", **ADA)).status for name in ("configmaps/a", "secrets/one", "secrets/two")]

    assert await codes() == await codes() == [404, 404, 403]
    await api.delete(f"{RBAC}/namespaces/default/rolebindings/all", **ROOT)
    assert await codes() == [403, 404, 403]
