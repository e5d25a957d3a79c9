"""Managed certificates: an authority for one Provider alone, which signs two certificates and is thrown away with its key.

The provider shows the one of its pinned name, the manager the one of `MANAGER`. Neither can be shown to another Provider. All are made anew
together, before they expire.
"""

from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddock.contract.tls import TlsMaterial

# The name in the manager's certificate, which a provider with managed certificates demands.
MANAGER = "paddock-virtrigaud-manager"
_DAYS, _RENEW_DAYS = 365, 30
# A clock that is set back must not make everything invalid.
_BACKDATED = timedelta(days=1)
# Since Python 3.13, verification is strict by default: an authority says what its key is for, and certificates name that key.
_SIGNS = x509.KeyUsage(
    digital_signature=False,
    key_cert_sign=True,
    crl_sign=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class ManagedCertificates(msgspec.Struct, frozen=True):
    """The certificates of both sides."""

    provider: TlsMaterial
    manager: TlsMaterial


def issue(server_name: str, seconds: float) -> ManagedCertificates:
    """Make the certificates of a Provider, valid from the time that is given in seconds."""
    now = datetime.fromtimestamp(seconds, UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "paddock-provider-ca")])
    authority = (
        _builder(name, name, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = authority.public_bytes(serialization.Encoding.PEM)
    return ManagedCertificates(
        _signed(server_name, ExtendedKeyUsageOID.SERVER_AUTH, (name, key, pem), now),
        _signed(MANAGER, ExtendedKeyUsageOID.CLIENT_AUTH, (name, key, pem), now),
    )


def is_old(certificate: bytes, seconds: float) -> bool:
    """Return whether a certificate expires soon, or is none."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return True
    return found.not_valid_after_utc <= datetime.fromtimestamp(seconds, UTC) + timedelta(days=_RENEW_DAYS)


def serial(certificate: bytes) -> str:
    """The serial number of a certificate, which tells it from every other one."""
    return f"{x509.load_pem_x509_certificate(certificate).serial_number:x}"


def _signed(
    name: str, usage: x509.ObjectIdentifier, authority: tuple[x509.Name, ec.EllipticCurvePrivateKey, bytes], now: datetime
) -> TlsMaterial:
    issuer, authority_key, pem = authority
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        # The name is too long for a subject.
        _builder(x509.Name([]), issuer, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return TlsMaterial(made.public_bytes(serialization.Encoding.PEM), secret, pem)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    dated = builder.not_valid_before(now - _BACKDATED).not_valid_after(now + timedelta(days=_DAYS))
    return dated.serial_number(x509.random_serial_number())
