"""Credentials: bootstrap tokens, ID tokens, tokens in Secrets, keys that change, certificates that are renewed."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from paddock.base.errors import Terminal
from paddock.kubernetes.meta.failure import Failure
from paddock.server.edge.http import ConnectionPeer, HttpRequest
from paddock.server.housekeeping.accounttokens import TokenSecretController
from paddock.server.security import issuer as issuing
from paddock.server.security import jose, oidc
from paddock.server.security.bootstraptokens import BootstrapTokens
from paddock.server.security.guard import Guard
from paddock.server.security.identity import Identities, PendingIdentity
from paddock.server.security.issuer import Issuer
from paddock.server.security.jose import SigningKey
from paddock.server.security.oidcsettings import OidcSettings
from paddock.server.security.pki import Authority
from paddock.server.security.tls import ServingContext, UnusableCertificate
from paddock.server.security.tokens import AccountTokens, IssuerTerms, own_keyring
from tests.coroutines import played_by, run_by
from tests.kit.servers.apiharness import GuardedHarness, Harness

ROOT = {"authorization": "Bearer root"}
SECRETS = "/api/v1/namespaces/{}/secrets"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NOW = 1_800_000_000.0


def play(folder: Path, script: Callable[[GuardedHarness], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with GuardedHarness(folder) as api:
            await script(api)

    asyncio.run(inside())


# --- bootstrap tokens ---------------------------------------------------------------------------------------------------------

TOKEN = "abcdef.0123456789abcdef"
GOOD = {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}
BOOTSTRAP: list[tuple[str, dict[str, str], dict[str, Any], tuple[str, ...] | None]] = [
    (TOKEN, GOOD, {}, ("system:bootstrappers",)),
    (
        TOKEN,
        {**GOOD, "auth-extra-groups": "system:bootstrappers:a, system:bootstrappers:b:c"},
        {},
        ("system:bootstrappers", "system:bootstrappers:a", "system:bootstrappers:b:c"),
    ),
    (TOKEN, {**GOOD, "expiration": "2027-01-15T08:00:01Z"}, {}, ("system:bootstrappers",)),
    (TOKEN, {**GOOD, "expiration": "2027-01-15T08:00:00Z"}, {}, None),
    (TOKEN, {**GOOD, "expiration": "2027-01-15T09:00:00+02:00"}, {}, None),
    (TOKEN, {**GOOD, "expiration": "soon"}, {}, None),
    (TOKEN, {**GOOD, "auth-extra-groups": "system:masters"}, {}, None),
    (TOKEN, {**GOOD, "usage-bootstrap-authentication": "false"}, {}, None),
    (TOKEN, {**GOOD, "token-id": "ghijkl"}, {}, None),
    (TOKEN, {**GOOD, "token-secret": "0123456789abcdeg"}, {}, None),
    (TOKEN, {}, {}, None),
    (TOKEN, GOOD, {"type": "Opaque"}, None),
    (TOKEN, GOOD, {"namespace": "default"}, None),
    ("abcdef.0123456789abcdeg", GOOD, {}, None),
    ("abcdeg.0123456789abcdef", GOOD, {}, None),
    ("abcdef", GOOD, {}, None),
    (TOKEN.upper(), GOOD, {}, None),
]


@pytest.mark.parametrize(("token", "said", "more", "groups"), BOOTSTRAP)
@played_by(play, "tmp_path")
async def test_a_bootstrap_token(
    api: GuardedHarness, /, token: str, said: dict[str, str], more: dict[str, Any], groups: tuple[str, ...] | None
) -> None:
    namespace = more.get("namespace", "kube-system")
    await api.namespace("kube-system")
    data = {key: base64.b64encode(value.encode()).decode() for key, value in said.items()}
    secret = {"metadata": {"name": "bootstrap-token-abcdef"}, "type": more.get("type", "bootstrap.kubernetes.io/token"), "data": data}
    assert (await api.post(SECRETS.format(namespace), secret, **ROOT)).status == 201
    found = BootstrapTokens(api.parts.view, api.clock).user(token)
    assert (found.groups if found else None) == groups
    assert found is None or found.name == "system:bootstrap:abcdef"


# --- OpenID Connect -----------------------------------------------------------------------------------------------------------

ISSUER = "https://id.example.org/realm"
FIRST, SECOND = SigningKey(rsa.generate_private_key(65537, 2048)), SigningKey(ec.generate_private_key(ec.SECP256R1()))
CLAIMS = {"iss": ISSUER, "aud": "paddock", "sub": "ada", "exp": NOW + 60, "groups": ["dev", "system:masters"], "email": "ada@example.org"}
TERMS = OidcSettings(issuer=ISSUER, client="paddock", groups_claim="groups", algorithms=("RS256", "ES256"))


class Provider:
    """A provider whose keys change, and which may be away."""

    def __init__(self) -> None:
        self.keys = [FIRST]
        self.away = False
        self.asked = 0

    async def fetch(self, url: str) -> Any:
        self.asked += 1
        if self.away:
            raise oidc.ProviderUnreachable("away")
        if url.endswith("/.well-known/openid-configuration"):
            return {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}
        assert url == f"{ISSUER}/keys"
        return {"keys": [*(each.key.published() for each in self.keys), {"kty": "oct"}]}


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def seconds(self) -> float:
        return self.time


async def who(source: oidc.OidcAuthenticator, token: str) -> tuple[str, tuple[str, ...]] | int | None:
    """As a server asks: once more when it has to wait."""
    for _ in range(2):
        try:
            found = source.user(token)
        except PendingIdentity as pending:
            await pending.settle()
        except Failure as said:
            return said.code
        else:
            return (found.name, found.groups) if found else None
    return 401


ADA = (f"{ISSUER}#ada", ("dev",))
IDENTITIES: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
    ({}, {}, ADA),
    ({"aud": ["other", "paddock"]}, {}, ADA),
    ({"groups": "dev"}, {}, ADA),
    ({"groups": 5}, {}, (ADA[0], ())),
    ({"iss": "https://other"}, {}, None),
    ({"aud": "other"}, {}, 401),
    ({"aud": None}, {}, 401),
    ({"exp": NOW}, {}, 401),
    ({"exp": None}, {}, 401),
    ({"nbf": NOW + 299}, {}, ADA),
    ({"nbf": NOW + 301}, {}, 401),
    ({"sub": ""}, {}, 401),
    ({"sub": ["ada"]}, {}, 401),
    ({}, {"name_prefix": "-"}, ("ada", ("dev",))),
    ({"sub": "system:admin"}, {"name_prefix": "-"}, 401),
    ({}, {"name_prefix": "oidc:"}, ("oidc:ada", ("dev",))),
    ({}, {"name_claim": "email"}, ("ada@example.org", ("dev",))),
    ({"email_verified": False}, {"name_claim": "email"}, 401),
    ({"email_verified": True}, {"name_claim": "email"}, ("ada@example.org", ("dev",))),
    ({}, {"groups_prefix": "oidc:"}, (ADA[0], ("oidc:dev", "oidc:system:masters"))),
    ({}, {"groups_claim": ""}, (ADA[0], ())),
    ({}, {"required": {"realm": "a"}}, 401),
    ({"realm": "a"}, {"required": {"realm": "a"}}, ADA),
    ({}, {"algorithms": ("ES256",)}, 401),
]


@pytest.mark.parametrize(("claims", "terms", "expected"), IDENTITIES)
def test_an_id_token(claims: dict[str, Any], terms: dict[str, Any], expected: Any) -> None:
    said = {key: value for key, value in {**CLAIMS, **claims}.items() if value is not None}
    chosen = OidcSettings(**{**{name: getattr(TERMS, name) for name in TERMS.__struct_fields__}, **terms})
    assert asyncio.run(who(oidc.OidcAuthenticator(chosen, Provider().fetch, Clock()), FIRST.sign(said))) == expected


@run_by(asyncio.run)
async def test_keys_are_fetched_when_they_change_and_not_for_every_bad_token() -> None:
    provider, clock = Provider(), Clock()
    source = oidc.OidcAuthenticator(TERMS, provider.fetch, clock)
    first, second = FIRST.sign(CLAIMS), SECOND.sign(CLAIMS)
    assert await asyncio.gather(*(who(source, first) for _ in range(5))) == [ADA] * 5
    assert provider.asked == 2, "those that wait share one answer"
    assert (await who(source, second), provider.asked) == (401, 2), "the keys were asked for just now"
    provider.keys = [SECOND]
    clock.time += 11
    assert (await who(source, second), provider.asked) == (ADA, 4)
    assert await who(source, first) == 401
    provider.away = True
    clock.time += 20
    assert await who(source, second) == ADA, "who is known stays known while the provider is away"


@run_by(asyncio.run)
async def test_a_provider_that_is_away_is_asked_again_later(caplog: pytest.LogCaptureFixture) -> None:
    provider, clock = Provider(), Clock()
    provider.away = True
    source = oidc.OidcAuthenticator(TERMS, provider.fetch, clock)
    assert await who(source, FIRST.sign(CLAIMS)) == 401
    provider.away = False
    assert await who(source, FIRST.sign(CLAIMS)) == 401
    clock.time += 11
    assert await who(source, FIRST.sign(CLAIMS)) == ADA
    assert [vars(record)["error"] for record in caplog.records if record.getMessage() == "OIDC issuer keys unavailable"] == ["away"]


@played_by(play, "tmp_path")
async def test_a_request_waits_for_the_keys(api: GuardedHarness, /) -> None:
    source = oidc.OidcAuthenticator(TERMS, Provider().fetch, Clock())
    api.api._guard = Guard(Identities((source,)), api.rbac)
    answer = await api.get("/api/v1/pods", authorization=f"Bearer {FIRST.sign(CLAIMS)}")
    assert answer.status == 403
    assert f'User \\"{ADA[0]}\\"' in answer.raw.decode()
    assert (await api.get("/api/v1/pods", authorization=f"Bearer {SECOND.sign(CLAIMS)}")).status == 401


def test_an_authority_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(Terminal, match="cannot read the authority of the OIDC issuer"):
        oidc.fetcher(tmp_path / "none")


# --- ServiceAccounts ----------------------------------------------------------------------------------------------------------


async def _token(api: Harness, **spec: Any) -> Any:
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}}, **ROOT)
    answer = await api.post(f"{ACCOUNTS}/robot/token", {"spec": spec}, **ROOT)
    assert answer.status == 201, answer.data
    return answer.data


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": "never"},
        {"exp": None},
        {"exp": True},
        {"nbf": "always"},
        {"aud": 5},
        {"aud": None},
        {"iss": ["https://kubernetes.default.svc"]},
        {"kubernetes.io": "x"},
        {"kubernetes.io": {"namespace": [], "serviceaccount": "robot"}},
    ],
)
@played_by(play, "tmp_path")
async def test_claims_of_another_type_are_nobodys(api: GuardedHarness, /, tmp_path: Path, wrong: dict[str, Any]) -> None:
    token = (await _token(api))["status"]["token"]
    claims = jose.claims_unchecked(token)
    assert claims is not None
    signed = own_keyring(tmp_path).sign({**claims, **wrong})
    answer = await api.get("/api/v1/namespaces", authorization=f"Bearer {signed}")
    assert (answer.status, answer.reason) == (401, "Unauthorized")


@played_by(play, "tmp_path")
async def test_a_key_that_is_put_aside_is_still_believed(api: GuardedHarness, /, tmp_path: Path) -> None:
    token = (await _token(api))["status"]["token"]
    (tmp_path / "service-accounts.key").rename(tmp_path / "service-accounts-old.key")
    after = AccountTokens(own_keyring(tmp_path), api.parts.view, api.clock)
    assert after.user(token) is not None
    assert len(after.published()["keys"]) == 2
    account = (await api.get(f"{ACCOUNTS}/robot", **ROOT)).data
    fresh, _ = after.issue(account, [], 600, None)
    assert api.tokens.user(fresh) is None, "the old server does not know the new key"
    (tmp_path / "service-accounts-old.key").unlink()
    at_last = AccountTokens(own_keyring(tmp_path), api.parts.view, api.clock)
    assert (at_last.user(token), at_last.user(fresh) is not None) == (None, True)


@played_by(play, "tmp_path")
async def test_the_longest_life_of_a_token_and_audiences_are_the_servers(api: GuardedHarness, /) -> None:
    api.tokens.terms = IssuerTerms(issuers=("https://new", "https://old"), audiences=("a", "b"), longest_seconds=1200)
    said = await _token(api, expirationSeconds=7200)
    assert (said["spec"]["expirationSeconds"], said["spec"]["audiences"]) == (1200, ["a", "b"])
    other = (await _token(api, audiences=["b", "c"]))["status"]["token"]
    for audiences, expected in ((None, ["b"]), (["c"], ["c"]), (["b", "c", "d"], ["b", "c"]), (["d"], None)):
        spec = {"token": other, **({"audiences": audiences} if audiences else {})}
        review = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": spec}, **ROOT)
        assert review.data["status"].get("audiences") == expected
        assert review.data["status"]["authenticated"] is (expected is not None)
    api.tokens.terms = IssuerTerms(issuers=("https://newest", "https://new"), audiences=("b",))
    assert api.tokens.user(other) is not None, "an earlier issuer is still believed"
    api.tokens.terms = IssuerTerms(issuers=("https://newest",), audiences=("b",))
    assert api.tokens.user(other) is None


@played_by(play, "tmp_path")
async def test_a_secret_is_filled_with_a_token_that_holds_as_long_as_it(api: GuardedHarness, /) -> None:
    keeper = TokenSecretController(api.parts, api.tokens, "-----BEGIN CERTIFICATE-----\n")
    keeper.start()
    await api.post(ACCOUNTS, {"metadata": {"name": "robot"}}, **ROOT)
    notes = {"kubernetes.io/service-account.name": "robot"}
    secret = {"metadata": {"name": "kept", "annotations": notes}, "type": "kubernetes.io/service-account-token"}
    path = SECRETS.format("default")
    assert (await api.post(path, secret, **ROOT)).status == 201
    await keeper.chores.settled()
    found = (await api.get(f"{path}/kept", **ROOT)).data
    data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    assert (data["namespace"], data["ca.crt"]) == ("default", "-----BEGIN CERTIFICATE-----\n")
    account = (await api.get(f"{ACCOUNTS}/robot", **ROOT)).data
    assert found["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
    user = api.tokens.user(data["token"])
    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:default:robot", account["metadata"]["uid"])
    assert api.tokens.user_for(data["token"], ("elsewhere",)) == (None, ())
    before = found["metadata"]["resourceVersion"]
    await keeper.chores.settled()
    assert (await api.get(f"{path}/kept", **ROOT)).data["metadata"]["resourceVersion"] == before
    await api.put(f"{path}/kept", {**found, "data": {**found["data"], "token": base64.b64encode(b"another").decode()}}, **ROOT)
    assert api.tokens.user(data["token"]) is None, "it is not the one that is kept"
    await api.put(f"{path}/kept", {**found, "metadata": {**found["metadata"], "resourceVersion": ""}}, **ROOT)
    assert api.tokens.user(data["token"]) is not None
    await api.delete(f"{ACCOUNTS}/robot", **ROOT)
    assert api.tokens.user(data["token"]) is None
    await keeper.chores.settled()
    assert (await api.get(f"{path}/kept", **ROOT)).status == 404
    await keeper.chores.stop()


@played_by(play, "tmp_path")
async def test_others_find_the_keys(api: GuardedHarness, /) -> None:
    served = Issuer(api.tokens, "https://127.0.0.1:7443/openid/v1/jwks")
    api.api.paths.update({issuing.CONFIGURATION: served.answer, issuing.KEYS: served.answer})
    said = await api.get(issuing.CONFIGURATION, **ROOT)
    assert said.data == {
        "issuer": "https://kubernetes.default.svc",
        "jwks_uri": "https://127.0.0.1:7443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    keys = await api.get(issuing.KEYS, **ROOT)
    assert keys.headers["content-type"] == "application/jwk-set+json"
    assert keys.data == api.tokens.published()
    assert "d" not in keys.data["keys"][0]
    assert (await api.post(issuing.KEYS, None, **ROOT)).status == 405
    assert (await api.get(f"{issuing.KEYS}/more", **ROOT)).status == 404
    assert (await api.get(issuing.KEYS)).status == 403
    api.tokens.terms = IssuerTerms(issuers=("not a url",))
    assert (await api.get(issuing.KEYS, **ROOT)).status == 404


# --- certificates -------------------------------------------------------------------------------------------------------------


def test_certificates_are_renewed_before_they_expire(tmp_path: Path) -> None:
    now = [datetime.now(UTC).replace(microsecond=0)]
    authority = Authority(tmp_path / "pki", lambda: now[0])
    admin = authority.administrator("admin", "system:masters")
    serving = ServingContext(lambda: authority.server(("a.example",)), authority.certificate_file)
    first = (tmp_path / "pki" / "server.crt").read_bytes()
    assert not serving.refresh()
    now[0] += timedelta(days=334)
    assert not serving.refresh()
    assert authority.administrator("admin", "system:masters") == admin
    now[0] += timedelta(days=2)
    assert authority.administrator("admin", "system:masters") != admin
    assert serving.refresh()
    assert (tmp_path / "pki" / "server.crt").read_bytes() != first
    second = x509.load_pem_x509_certificate((tmp_path / "pki" / "server.crt").read_bytes())
    assert second.not_valid_after_utc == now[0] + timedelta(days=365)
    second.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))


def test_certificates_of_another_authority_of_the_same_name_are_made_anew(tmp_path: Path) -> None:
    def made() -> list[bytes]:
        authority = Authority(tmp_path)
        return [authority.server(())[0].read_bytes(), authority.administrator("admin", "system:masters")[0]]

    old = made()
    assert made() == old
    for name in ("ca.crt", "ca.key"):
        (tmp_path / name).unlink()
    assert not set(made()) & set(old)


def test_a_certificate_of_other_names_is_made_anew(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first = authority.server(("a.example", "::2"))[0].read_bytes()
    assert authority.server(("0:0::2", "a.example"))[0].read_bytes() == first
    assert authority.server(("a.example", "::3"))[0].read_bytes() != first
    admin = authority.administrator("admin", "system:masters")
    assert authority.administrator("admin", "dev") != admin


@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_an_authority_that_cannot_be_used_ends_the_start(tmp_path: Path, name: str) -> None:
    Authority(tmp_path / "a"), Authority(tmp_path / "b")
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    with pytest.raises(Terminal, match=r"the key .*ca\.key is not that of the certificate .*ca\.crt"):
        Authority(tmp_path / "a")
    (tmp_path / "a" / name).write_text("nonsense")
    with pytest.raises(Terminal, match=f"cannot read the (key|certificate) .*{name}"):
        Authority(tmp_path / "a")


def test_a_key_of_tokens_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    Authority(tmp_path)
    own_keyring(tmp_path)
    (tmp_path / "service-accounts.key").write_text("nonsense")
    with pytest.raises(Terminal, match=r"cannot read the private key .*service-accounts\.key"):
        own_keyring(tmp_path)


def test_a_bad_certificate_does_not_take_the_place_of_a_good_one(tmp_path: Path) -> None:
    one, other = Authority(tmp_path / "a").server(()), Authority(tmp_path / "b").server(())
    pair = [one]
    serving = ServingContext(lambda: pair[0], tmp_path / "a" / "ca.crt")
    pair[0] = (one[0], other[1])
    with pytest.raises(UnusableCertificate, match="cannot serve the certificate"):
        serving.refresh()
    pair[0] = other
    assert serving.refresh()
    with pytest.raises(UnusableCertificate, match="cannot read the authority of clients"):
        ServingContext(lambda: one, tmp_path / "none")


def test_private_files_are_private(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir(mode=0o755)
    authority = Authority(tmp_path / "pki")
    authority.server(())
    authority.administrator("admin", "system:masters")
    own_keyring(tmp_path / "pki")
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700
    keys = list((tmp_path / "pki").glob("*.key"))
    assert len(keys) == 4
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}


def test_nobody_is_nobody_where_that_is_wanted() -> None:
    request = HttpRequest("GET", "/version", {}, b"", ConnectionPeer("::1"))
    assert Identities().user(request).name == "system:anonymous"
    with pytest.raises(Failure) as said:
        Identities(anonymous=False).user(request)
    assert said.value.code == 401
