"""Certificates of Paddock's own authorities, and of others: what clients with each Python accept."""

import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509

from paddock.apiserver.security.pki import Authority
from paddock.base.certificates import show, trusting
from paddock.contract import issuing
from tests import providertls

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
