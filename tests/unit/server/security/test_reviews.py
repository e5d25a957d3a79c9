"""Questions about users and rights, and tokens of ServiceAccounts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from paddock.server.security.rbac import UserRights
from tests.coroutines import played_by
from tests.kit.servers.apiharness import GuardedHarness, Reply

Script = Callable[[GuardedHarness], Awaitable[Any]]
ROOT = {"authorization": "Bearer root"}
ADA = {"authorization": "Bearer ada"}
ACCESS = "/apis/authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def guarded(tmp_path: Path) -> Callable[[Script], None]:
    """Runs a script with a server whose door is shut."""

    def run(script: Script) -> None:
        async def inside() -> None:
            async with GuardedHarness(tmp_path) as api:
                await script(api)

        asyncio.run(inside())

    return run


async def _role(api: GuardedHarness, user: str, *rules: dict[str, Any]) -> None:
    """Give a user these rights."""
    name = user.replace(":", "-")
    made = await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)}, **ROOT)
    assert made.status == 201, made.data
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    made = await api.post(f"{RBAC}/clusterrolebindings", binding, **ROOT)
    assert made.status == 201, made.data


async def _token(api: GuardedHarness, **spec: Any) -> Reply:
    """Ask for a token of the account `robot`, which is made when it is missing."""
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}}, **ROOT)
    return await api.post(
        f"{ACCOUNTS}/robot/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}, **ROOT
    )


async def _is_known(api: GuardedHarness, token: str) -> bool:
    review = await api.post(f"{WHO}/tokenreviews", {"spec": {"token": token}}, **ROOT)
    return bool(review.data["status"]["authenticated"])


async def _myself(api: GuardedHarness, token: str) -> Reply:
    return await api.post(f"{WHO}/selfsubjectreviews", {}, authorization=f"Bearer {token}")


_ONE_SECRET = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]}
RULES = [
    (_ONE_SECRET, {"verb": "get", "resource": "secrets", "name": "one"}, True),
    (_ONE_SECRET, {"verb": "get", "resource": "secrets", "name": "two"}, False),
    (_ONE_SECRET, {"verb": "list", "resource": "secrets"}, False),
    ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verb": "patch", "resource": "pods", "subresource": "status"}, True),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, {"verb": "get", "resource": "pods", "subresource": "log"}, False),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, {"verb": "get", "resource": "pods", "subresource": "log"}, True),
    ({"verbs": ["get"], "apiGroups": ["a.b"], "resources": ["pods"]}, {"verb": "get", "resource": "pods"}, False),
]


# What everybody may do who has said who they are, as the server sets it up at its start.
_ASK = {"verbs": ["create"], "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"], "resources": ["*"]}


@pytest.mark.spec("kube-api", 121)
@pytest.mark.parametrize(("rule", "asked", "allowed"), RULES)
@played_by("guarded")
async def test_a_rule_decides_the_same_for_every_way_to_ask(
    api: GuardedHarness, /, rule: dict[str, Any], asked: dict[str, str], allowed: bool
) -> None:
    await _role(api, "ada", rule, _ASK)
    attributes = {"namespace": "default", **asked}
    said = await api.post(f"{ACCESS}/subjectaccessreviews", {"spec": {"user": "ada", "resourceAttributes": attributes}}, **ROOT)
    assert said.data["status"]["allowed"] is allowed
    said = await api.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}, **ADA)
    assert said.data["status"]["allowed"] is allowed
    rules = await api.post(f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, **ADA)
    assert rule in rules.data["status"]["resourceRules"]


@pytest.mark.spec("kube-api", 121)
@played_by("guarded")
async def test_paths_are_allowed_by_their_rules_alone(api: GuardedHarness, /) -> None:
    await _role(api, "ada", {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}, _ASK)
    for path, allowed in (("/metrics", True), ("/metrics/more", False), ("/logs/one", True), ("/version", False)):
        body = {"spec": {"nonResourceAttributes": {"path": path, "verb": "get"}}}
        said = await api.post(f"{ACCESS}/selfsubjectaccessreviews", body, **ADA)
        assert said.data["status"]["allowed"] is allowed, path
        assert (await api.get(path, **ADA)).status == (404 if allowed else 403), path


@played_by("guarded")
async def test_a_wrong_token_is_never_nobody(api: GuardedHarness, /) -> None:
    assert (await api.get("/healthz", authorization="Bearer no.such.token")).status == 401
    assert (await api.get("/api/v1/namespaces")).status == 403


@pytest.mark.spec("kube-api", 123)
@played_by("guarded")
async def test_a_token_says_whose_it_is(api: GuardedHarness, /) -> None:
    made = await _token(api)
    assert made.status == 201, made.data
    token = made.data["status"]["token"]
    review = await api.post(f"{WHO}/tokenreviews", {"spec": {"token": token}}, **ROOT)
    status = review.data["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in status["user"]["groups"]
    await _role(api, "system:serviceaccount:default:robot", _ASK)
    myself = await _myself(api, token)
    assert myself.data["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"


@pytest.mark.spec("kube-api", 123)
@played_by("guarded")
async def test_a_token_ends_when_its_time_is_over(api: GuardedHarness, /) -> None:
    made = await _token(api, expirationSeconds=600)
    token = made.data["status"]["token"]
    api.clock.time += 599
    assert await _is_known(api, token)
    api.clock.time += 2
    assert not await _is_known(api, token)
    assert (await _token(api, expirationSeconds=599)).status == 422


@pytest.mark.spec("kube-api", 123)
@played_by("guarded")
async def test_a_token_dies_with_its_account(api: GuardedHarness, /) -> None:
    token = (await _token(api)).data["status"]["token"]
    assert await _is_known(api, token)
    await api.delete(f"{ACCOUNTS}/robot", **ROOT)
    assert not await _is_known(api, token)
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}}, **ROOT)
    assert not await _is_known(api, token), "another account of the same name is somebody else"


@pytest.mark.spec("kube-api", 123)
@played_by("guarded")
async def test_a_token_dies_with_what_it_is_bound_to(api: GuardedHarness, /) -> None:
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "lifetime"}}, **ROOT)
    bound = {"kind": "Secret", "apiVersion": "v1", "name": "lifetime"}
    token = (await _token(api, boundObjectRef=bound)).data["status"]["token"]
    assert await _is_known(api, token)
    await api.delete("/api/v1/namespaces/default/secrets/lifetime", **ROOT)
    assert not await _is_known(api, token)
    assert (await _token(api, boundObjectRef=bound)).status == 404


@pytest.mark.spec("kube-api", 123)
@played_by("guarded")
async def test_a_token_for_others_is_refused_here(api: GuardedHarness, /) -> None:
    token = (await _token(api, audiences=["vault"])).data["status"]["token"]
    assert not await _is_known(api, token)
    assert (await api.get("/healthz", authorization=f"Bearer {token}")).status == 401
    review = await api.post(f"{WHO}/tokenreviews", {"spec": {"token": token, "audiences": ["vault", "other"]}}, **ROOT)
    assert review.data["status"]["audiences"] == ["vault"]


@pytest.mark.parametrize("spec", [{}, {"spec": {"token": ""}}])
@played_by("guarded")
async def test_a_review_without_a_token_is_refused(api: GuardedHarness, /, spec: dict[str, Any]) -> None:
    said = await api.post(f"{WHO}/tokenreviews", spec, **ROOT)
    assert (said.status, said.data["message"]) == (400, "token is required for TokenReview in authentication")


@played_by("guarded")
async def test_a_token_that_was_changed_is_nobodys(api: GuardedHarness, /) -> None:
    header, body, signature = (await _token(api)).data["status"]["token"].split(".")
    for text in (
        f"{header}.{body[:-2]}AA.{signature}",
        f"{header}.{body}.",
        f"{header}.{body}.{signature}AAAA",
        f".{body}.{signature}",
    ):
        assert not await _is_known(api, text)


@pytest.mark.spec("kube-api", 124)
@played_by("guarded")
async def test_acting_for_others_needs_the_right_to(api: GuardedHarness, /) -> None:
    await _role(api, "ada", {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]})
    await _role(api, "bob", _ASK)
    said = await api.post(f"{WHO}/selfsubjectreviews", {}, **ADA, impersonate_user="bob")
    assert said.data["status"]["userInfo"]["username"] == "bob"
    assert (await api.post(f"{WHO}/selfsubjectreviews", {}, **ADA, impersonate_user="eve")).status == 403
    assert (
        await api.post(f"{WHO}/selfsubjectreviews", {}, **ADA, impersonate_user="bob", impersonate_group="system:masters")
    ).status == 403


@pytest.mark.spec("kube-api", 125)
@played_by("guarded")
async def test_reviews_are_answered_and_forgotten(api: GuardedHarness, /) -> None:
    attributes = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}
    before = api.store.revision
    for path, spec in (
        (f"{ACCESS}/subjectaccessreviews", {"user": "ada", **attributes}),
        (f"{ACCESS}/selfsubjectaccessreviews", attributes),
        (f"{ACCESS}/namespaces/default/localsubjectaccessreviews", {"user": "ada", **attributes}),
        (f"{ACCESS}/selfsubjectrulesreviews", {"namespace": "default"}),
        (f"{WHO}/tokenreviews", {"token": "ada"}),
        (f"{WHO}/selfsubjectreviews", {}),
    ):
        said = await api.post(path, {"spec": spec} if spec else {}, **ROOT)
        assert said.status == 201, (path, said.data)
        assert said.data["status"], path
    assert api.store.revision == before


@pytest.mark.spec("kube-api", 125)
@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("subjectaccessreviews", {"user": "ada"}),
        ("subjectaccessreviews", {"resourceAttributes": {"verb": "get"}}),
        ("subjectaccessreviews", {"user": "ada", "resourceAttributes": {}, "nonResourceAttributes": {}}),
        ("namespaces/default/localsubjectaccessreviews", {"user": "ada", "resourceAttributes": {"namespace": "other"}}),
        ("namespaces/default/localsubjectaccessreviews", {"user": "ada", "nonResourceAttributes": {"path": "/", "verb": "get"}}),
    ],
)
@played_by("guarded")
async def test_a_question_that_says_nothing_is_refused(api: GuardedHarness, /, path: str, spec: dict[str, Any]) -> None:
    said = await api.post(f"{ACCESS}/{path}", {"spec": spec}, **ROOT)
    assert said.status == 422, said.data


@pytest.mark.spec("kube-api", 44)
@played_by("guarded")
async def test_a_review_is_no_table(api: GuardedHarness, /) -> None:
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert (await api.post(f"{ACCESS}/selfsubjectaccessreviews", body, **ROOT, accept=table)).status == 406


def _characters(kept: dict[tuple[str, tuple[str, ...], str], UserRights]) -> int:
    """Count what is kept of texts that came with questions."""
    asked = sum(len(namespace) + len(user) + sum(map(len, groups)) for user, groups, namespace in kept)
    return asked + sum(len(text) for rights in kept.values() for what in rights._known for text in what)


@played_by("guarded")
async def test_what_a_question_says_at_length_is_not_kept(api: GuardedHarness, /) -> None:
    await _role(api, "ada", _ASK, {"verbs": ["get"], "nonResourceURLs": ["/api/*"]})
    await api.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/api/a"}}}, **ADA)
    before = _characters(api.rbac._kept)
    for number in range(10):
        long = f"{number}" + "x" * 10_000
        questions: list[tuple[dict[str, Any], bool]] = [
            ({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": long}}, False),
            ({"nonResourceAttributes": {"verb": "get", "path": f"/api/{long}"}}, True),
        ]
        for spec, allowed in questions:
            answer = await api.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": spec}, **ADA)
            assert answer.data["status"]["allowed"] is allowed
        spec = {"user": long, "groups": [long] * 2, "nonResourceAttributes": {"verb": "get", "path": "/api/a"}}
        answer = await api.post(f"{ACCESS}/subjectaccessreviews", {"spec": spec}, **ROOT)
        assert answer.data["status"]["allowed"] is False
    assert _characters(api.rbac._kept) == before > 0
