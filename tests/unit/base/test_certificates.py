"""Certificates of Paddock's own authorities, and of others: what clients with each Python accept."""

import hashlib
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from paddock.base.certificates import Pair, describe, examine, is_key, is_pair, show, trusting
from paddock.contract import issuing
from paddock.server.security.pki import Authority
from tests.kit.providers import providertls

HOST = "a.example"


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Play a handshake in memory."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(back, there, server_hostname=HOST), server.wrap_bio(there, back, server_side=True)]
    done = set[ssl.SSLObject]()
    for _ in range(10):
        for side in sides:
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                pass
    assert len(done) == len(sides)


def strict(authority: bytes) -> ssl.SSLContext:
    """A client's context as Python 3.13 makes it."""
    context = ssl.create_default_context(cadata=authority.decode())
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def serving(certificate: bytes, key: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    show(context, certificate, key)
    return context


def both_ways(server: tuple[bytes, bytes], client: tuple[bytes, bytes], authority: bytes) -> None:
    """Let both sides verify strictly."""
    reading, shown = strict(authority), serving(*server)
    show(reading, *client)
    shown.load_verify_locations(cadata=authority.decode())
    shown.verify_mode = ssl.CERT_REQUIRED
    shown.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    shake_hands(reading, shown)


def test_a_bundle_is_described_by_subjects_and_fingerprints(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    serving_one, _ = authority.server([HOST])
    prints = [
        hashlib.sha256(x509.load_pem_x509_certificate(each).public_bytes(serialization.Encoding.DER)).hexdigest()
        for each in (authority.certificate, serving_one.read_bytes())
    ]
    first, second = (":".join(each[at : at + 2] for at in range(0, 64, 2)).upper() for each in prints)
    found = describe(authority.certificate.decode() + "and\n" + serving_one.read_text())
    assert found == f"commonName=paddock-ca (SHA-256 {first}), (SHA-256 {second})"
    assert describe("") == ""


def test_certificates_of_the_server_and_its_clients_pass_a_strict_verification(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.server([HOST])
    both_ways((certificate.read_bytes(), key.read_bytes()), authority.client("ada"), authority.certificate)


def test_managed_certificates_of_providers_pass_a_strict_verification() -> None:
    made = issuing.issue(HOST, time.time())
    both_ways((made.provider.certificate, made.provider.key), (made.manager.certificate, made.manager.key), made.provider.authority)


def test_a_serving_certificate_without_its_authoritys_key_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(self: x509.CertificateBuilder, extension: x509.ExtensionType, critical: bool) -> x509.CertificateBuilder:
        return self if isinstance(extension, x509.AuthorityKeyIdentifier) else kept(self, extension, critical)

    kept = x509.CertificateBuilder.add_extension
    with monkeypatch.context() as old:
        old.setattr(x509.CertificateBuilder, "add_extension", without)
        certificate, _ = Authority(tmp_path).server([HOST])
        before = certificate.read_bytes()
    certificate, _ = Authority(tmp_path).server([HOST])
    assert certificate.read_bytes() != before


@pytest.fixture
def pairs(tmp_path: Path) -> dict[str, Pair]:
    """Certificates of one authority and of another one of the same name."""
    made: dict[str, Pair] = {}
    for name in ("own", "other"):
        folder = tmp_path / name
        authority = Authority(folder)
        authority.administrator("admin", "system:masters")
        authority.server([HOST])
        for each in ("ca", "server", "admin"):
            made[f"{name} {each}"] = folder / f"{each}.crt", folder / f"{each}.key"
    made["foreign key"] = made["own server"][0], made["other server"][1]
    made["nothing"] = tmp_path / "none.crt", tmp_path / "none.key"
    (tmp_path / "broken").write_text("nonsense")
    made["broken"] = tmp_path / "broken", made["own server"][1]
    return made


def test_a_peer_reads_a_good_certificate(pairs: dict[str, Pair]) -> None:
    server = examine(pairs["own server"], pairs["own ca"], of_client=False)
    assert server is not None and ("DNS", HOST) in server["subjectAltName"]
    client = examine(pairs["own admin"], pairs["own ca"], of_client=True)
    assert client is not None and client["subject"] == ((("organizationName", "system:masters"),), (("commonName", "admin"),))


@pytest.mark.parametrize("of_client", [False, True])
@pytest.mark.parametrize("name", ["other server", "other admin", "foreign key", "nothing", "broken"])
def test_a_peer_refuses_a_bad_certificate(pairs: dict[str, Pair], name: str, of_client: bool) -> None:
    assert examine(pairs[name], pairs["own ca"], of_client=of_client) is None


@pytest.mark.parametrize(("name", "of_client"), [("own server", True), ("own admin", False)])
def test_a_peer_refuses_a_certificate_for_another_use(pairs: dict[str, Pair], name: str, of_client: bool) -> None:
    assert examine(pairs[name], pairs["own ca"], of_client=of_client) is None


def test_a_peer_refuses_an_expired_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path, lambda: datetime.now(UTC) - timedelta(days=366))
    authority.administrator("admin", "system:masters")
    files = authority.server([HOST]), (tmp_path / "admin.crt", tmp_path / "admin.key")
    own = tmp_path / "ca.crt", tmp_path / "ca.key"
    assert [examine(each, own, of_client=each is files[1]) for each in files] == [None, None]


def test_pairs_and_keys_are_told_from_other_files(pairs: dict[str, Pair]) -> None:
    assert [name for name, pair in pairs.items() if not is_pair(pair)] == ["foreign key", "nothing", "broken"]
    certificate = pairs["own ca"][0]
    assert is_key(pairs["own ca"][1], certificate) and is_key(pairs["other server"][1], certificate)
    assert not is_key(pairs["broken"][0], certificate) and not is_key(pairs["nothing"][1], certificate)


def test_certificates_that_python_accepted_before_are_accepted(tmp_path: Path) -> None:
    """A server's own certificate, which is no authority; and Python 3.13 demands no more of it than the ones before."""
    assert not trusting().verify_flags & ssl.VerifyFlags.VERIFY_X509_STRICT
    alone = providertls.Authority(HOST).issue(HOST, common=HOST)
    shake_hands(trusting(alone.certificate.decode()), serving(alone.certificate, alone.key))
    (tmp_path / "ca.crt").write_bytes(alone.certificate)
    shake_hands(trusting(file=tmp_path / "ca.crt"), serving(alone.certificate, alone.key))
    other = providertls.Authority("another").issue(HOST)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(trusting(alone.certificate.decode()), serving(other.certificate, other.key))
