"""TLS material of a manager and its providers, made for a test."""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddock.contract.tls import TlsMaterial

_BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])


class Authority:
    """Issues certificates for both sides."""

    def __init__(self, common: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(common)
        public = self._key.public_key()
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
        self._certificate = (
            self._builder(self._name, public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(False, False, False, False, False, True, False, False, False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, *names: str, common: str = "", uris: tuple[str, ...] = (), end: datetime.datetime = _END) -> TlsMaterial:
        """A certificate with these DNS names, for servers and clients, and the authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = self._builder(_name(common), key.public_key(), end).add_extension(usages, critical=False)
        others = [*(x509.DNSName(each) for each in names), *(x509.UniformResourceIdentifier(each) for each in uris)]
        if others:
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=not common)
        made = builder.add_extension(self._identifier, critical=False).sign(self._key, hashes.SHA256())
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return TlsMaterial(made.public_bytes(serialization.Encoding.PEM), secret, self.pem)

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePublicKey, end: datetime.datetime = _END) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key)
        return builder.serial_number(x509.random_serial_number()).not_valid_before(_BEGIN).not_valid_after(end)


def write(folder: Path, material: TlsMaterial) -> Path:
    """Put the files of a provider's Secret into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tls.crt").write_bytes(material.certificate)
    (folder / "tls.key").write_bytes(material.key)
    (folder / "ca.crt").write_bytes(material.authority)
    return folder
