"""Requests for certificates: who asked is noted, who may approve and sign is a right, what is signed is a client certificate."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddock.server.housekeeping.csrsigner import CsrSigner
from paddock.server.security.pki import Authority
from tests.coroutines import played_by
from tests.kit.servers.apiharness import GuardedHarness, Reply

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLIENTS = "kubernetes.io/kube-apiserver-client"
ROOT = {"authorization": "Bearer root"}
APPROVED = {"type": "Approved", "status": "True", "reason": "Test"}
_KEY = ec.generate_private_key(ec.SECP256R1())


def request(name: str = "ada", group: str = "dev") -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    extended = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return base64.b64encode(extended.sign(_KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()


def spec(**more: Any) -> dict[str, Any]:
    return {"request": request(), "signerName": CLIENTS, "usages": ["client auth", "digital signature"], **more}


async def made(api: GuardedHarness, name: str = "a", who: str = "root", **more: Any) -> Reply:
    return await api.post(PATH, {"metadata": {"name": name}, "spec": spec(**more)}, authorization=f"Bearer {who}")


async def decide(api: GuardedHarness, *conditions: dict[str, str], who: str = "root", path: str = "approval", **status: Any) -> Reply:
    found = (await api.get(f"{PATH}/a", **ROOT)).data
    body = {**found, "status": {**(found.get("status") or {}), "conditions": list(conditions), **status}}
    return await api.put(f"{PATH}/a/{path}", body, authorization=f"Bearer {who}")


async def may(api: GuardedHarness, *rules: dict[str, list[str]]) -> None:
    group = {"apiGroups": ["certificates.k8s.io"]}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "ada"}, "rules": [{**group, **rule} for rule in rules]}, **ROOT)
    subject = {"kind": "User", "name": "ada"}
    body = {"metadata": {"name": "ada"}, "roleRef": {"kind": "ClusterRole", "name": "ada"}, "subjects": [subject]}
    assert (await api.post(f"{RBAC}/clusterrolebindings", body, **ROOT)).status == 201


def play(folder: Path, script: Callable[[GuardedHarness, Authority, CsrSigner], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with GuardedHarness(folder) as api:
            authority = Authority(folder / "pki")
            signing = CsrSigner(api.parts, authority)
            signing.start()
            await script(api, authority, signing)
            await signing.chores.stop()

    asyncio.run(inside())


@played_by(play, "tmp_path")
async def test_what_is_approved_is_signed_as_a_client_certificate_and_nothing_more(
    api: GuardedHarness, authority: Authority, signing: CsrSigner, /
) -> None:
    assert (await made(api, expirationSeconds=3600, username="somebody else")).data["spec"]["username"] == "root"
    await signing.chores.settled()
    assert "certificate" not in ((await api.get(f"{PATH}/a", **ROOT)).data.get("status") or {})
    assert (await decide(api, APPROVED)).status == 200
    await signing.chores.settled()
    found = (await api.get(f"{PATH}/a", **ROOT)).data["status"]
    assert [each["type"] for each in found["conditions"]] == ["Approved"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(found["certificate"]))
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    assert certificate.subject.rfc4514_string() == "CN=ada,O=dev"
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(hours=1, minutes=5)
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize(
    ("more", "condition", "expected"),
    [
        ({"usages": ["server auth", "client auth"]}, APPROVED, "invalid usage for client certificate: server auth"),
        ({"usages": ["digital signature"]}, APPROVED, "missing required usage for client certificate: client auth"),
        ({}, {**APPROVED, "type": "Denied"}, ""),
        ({"signerName": "example.com/own"}, APPROVED, ""),
    ],
)
@played_by(play, "tmp_path")
async def test_what_is_not_to_be_signed_is_not(
    api: GuardedHarness, authority: Authority, signing: CsrSigner, /, more: dict[str, Any], condition: dict[str, str], expected: str
) -> None:
    assert (await made(api, **more)).status == 201
    assert (await decide(api, condition)).status == 200
    await signing.chores.settled()
    found = (await api.get(f"{PATH}/a", **ROOT)).data["status"]
    assert "certificate" not in found
    assert [each["message"] for each in found["conditions"] if each["type"] == "Failed"] == ([expected] if expected else [])


@played_by(play, "tmp_path")
async def test_approving_and_signing_are_rights_by_signer(api: GuardedHarness, authority: Authority, signing: CsrSigner, /) -> None:
    paths = {"verbs": ["update"], "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"]}
    await made(api, signerName="example.com/one")
    await may(api, paths)
    refused = await decide(api, APPROVED, who="ada")
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert 'user not permitted to approve requests with signerName "example.com/one"' in refused.data["message"]
    rights = {"verbs": ["approve"], "resources": ["signers"], "resourceNames": ["example.com/*"]}
    await api.put(
        f"{RBAC}/clusterroles/ada",
        {"metadata": {"name": "ada"}, "rules": [{"apiGroups": ["certificates.k8s.io"], **rule} for rule in (paths, rights)]},
        **ROOT,
    )
    approved = await decide(api, APPROVED, who="ada", certificate="bm9uZQ==")
    assert approved.status == 200
    assert "certificate" not in approved.data["status"], "who approves does not sign"
    kept = approved.data["status"]["conditions"]
    pem = base64.b64encode(authority.certificate).decode()
    assert (await decide(api, *kept, who="ada", path="status", certificate=pem)).status == 403
    assert (await decide(api, *kept, path="status", certificate="bm9uZQ==")).status == 422
    assert (await decide(api, *kept, path="status", certificate=pem)).status == 200
    assert (await decide(api, *kept, path="status", certificate=base64.b64encode(b"x").decode())).status == 422
    assert (await decide(api, path="status", certificate=pem)).status == 422, "what is decided stays"
    assert (await decide(api, {**APPROVED, "type": "Denied"}, *kept)).status == 422


@played_by(play, "tmp_path")
async def test_who_asked_and_for_what_never_changes(api: GuardedHarness, authority: Authority, signing: CsrSigner, /) -> None:
    await may(api, {"verbs": ["create"], "resources": ["certificatesigningrequests"]})
    before = await made(api, who="ada")
    assert before.data["spec"]["username"] == "ada"
    assert before.data["spec"]["groups"] == ["system:authenticated"]
    changed = {**before.data, "spec": {**before.data["spec"], "username": "root", "request": request("root")}}
    after = await api.put(f"{PATH}/a", {**changed, "status": {"conditions": [APPROVED]}}, **ROOT)
    assert (after.status, after.data["spec"], after.data.get("status")) == (200, before.data["spec"], before.data.get("status"))
    refused = await api.post(PATH, {"metadata": {"name": "m"}, "spec": spec(request=request("x", "system:masters"))}, **ROOT)
    assert (refused.status, "system:masters group is not allowed" in refused.data["message"]) == (403, True)
    for selected, count in ((CLIENTS, 1), ("example.com/x", 0)):
        listed = await api.get(f"{PATH}?fieldSelector=spec.signerName={selected}", **ROOT)
        assert len(listed.data["items"]) == count


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"request": "bm9uZQ=="}, "spec.request"),
    ({"request": request()[:-8]}, "spec.request"),
    ({"usages": []}, "spec.usages"),
    ({"usages": ["flying"]}, "spec.usages[0]"),
    ({"usages": ["client auth", "client auth"]}, "spec.usages[1]"),
    ({"signerName": "kubernetes.io/legacy-unknown"}, "spec.signerName"),
    ({"signerName": "nobody"}, "spec.signerName"),
    ({"expirationSeconds": 599}, "spec.expirationSeconds"),
]


@pytest.mark.parametrize(("more", "field"), WRONG)
@played_by(play, "tmp_path")
async def test_what_cannot_be_signed_is_refused(
    api: GuardedHarness, authority: Authority, signing: CsrSigner, /, more: dict[str, Any], field: str
) -> None:
    refused = await made(api, **more)
    assert refused.status == 422, refused.data
    assert list(refused.causes) == [field]


@played_by(play, "tmp_path")
async def test_requests_that_are_done_with_are_forgotten(api: GuardedHarness, authority: Authority, signing: CsrSigner, /) -> None:
    await made(api)
    await made(api, "pending")
    await decide(api, APPROVED)
    await signing.chores.settled()
    for seconds, left in ((3500, ["a", "pending"]), (200, ["pending"]), (82_000, ["pending"]), (2_000, [])):
        api.clock.time += seconds
        await signing.forget()
        listed = (await api.get(PATH, **ROOT)).data["items"]
        assert [each["metadata"]["name"] for each in listed] == left
