"""Certificates in TLS: contexts that present or trust them, and the verification of one as a peer does it.

All of it uses OpenSSL through the module `ssl`, so a program that signs nothing need not load the library cryptography.
"""

import contextlib
import hashlib
import os
import re
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from paddock.base.descriptors import write_all

# A certificate that expires within this time is renewed.
RENEWAL = timedelta(days=30)
# Certificate and key.
Pair = tuple[Path, Path]
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
# As `getpeercert` of `ssl` describes it.
PeerCertificate = dict[str, Any]


def trusting(authority: str | None = None, *, file: str | Path | None = None) -> ssl.SSLContext:
    """Return a context of a client that verifies as Go does, with every Python; of this authority (PEM), this file's, or the system's.

    All that a bundle holds is an anchor, also a serving certificate itself. A certificate may lack what Python 3.13 asks for by default.
    """
    context = ssl.create_default_context(cafile=file, cadata=authority or None)
    context.verify_flags = (context.verify_flags | ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Let a context show a certificate (PEM); raises OSError or SSLError.

    OpenSSL takes keys from files only; this one is never on a disk.
    """
    descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        write_all(descriptor, certificate + b"\n" + key)
        # An encrypted key would make OpenSSL ask on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: "")
    finally:
        os.close(descriptor)


def describe(bundle: str) -> str:
    """Return the subjects of a bundle's certificates (PEM), each with its fingerprint as `openssl x509 -fingerprint -sha256` prints it."""
    found = []
    for each in _PEM.findall(bundle):
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(each)).digest()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=each)
        # It lists CA certificates only; of others, the fingerprint has to do.
        listed: list[PeerCertificate] = context.get_ca_certs()
        subjects = [pair for one in listed for group in one["subject"] for pair in group]
        found.append(" ".join([*(f"{name}={value}" for name, value in subjects), f"(SHA-256 {digest.hex(':').upper()})"]))
    return ", ".join(found)


def is_pair(pair: Pair) -> bool:
    """Return whether a certificate and a key can be read, and belong together."""
    try:
        _show(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), pair)
    except OSError:
        return False
    return True


def is_key(key: Path, certificate: Path) -> bool:
    """Return whether a key can be read. OpenSSL reads one only with a certificate; if it then reports a mismatch, it has read the key."""
    try:
        _show(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), (certificate, key))
    except OSError as error:
        return isinstance(error, ssl.SSLError) and error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
    return True


def examine(pair: Pair, authority: Pair, *, of_client: bool) -> PeerCertificate | None:
    """Return a certificate as a peer sees it that trusts this authority only; None if the peer refuses it, or the key does not match.

    A handshake in memory is the whole verification: signature, purpose, validity, and since Python 3.13 the names of keys.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    judge = server if of_client else client
    judge.verify_mode = ssl.CERT_REQUIRED
    judge.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags.VERIFY_X509_STRICT
    try:
        judge.load_verify_locations(authority[0])
        _show(client if of_client else server, pair)
        if of_client:
            # A server needs a certificate, too.
            _show(server, authority)
        return _shake_hands(server, client)[0 if of_client else 1].getpeercert()
    except OSError:
        return None


def is_old(certificate: PeerCertificate, now: datetime) -> bool:
    """Return whether a certificate expires soon, so that a new one is due."""
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC) <= now + RENEWAL


def _show(context: ssl.SSLContext, pair: Pair) -> None:
    # An encrypted key would make OpenSSL ask on the terminal.
    context.load_cert_chain(*pair, password=lambda: "")


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return both ends of a connection in memory; raises SSLError if one refuses the other."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = server.wrap_bio(there, back, server_side=True), client.wrap_bio(back, there)
    # The client begins, and with TLS 1.2 it needs a last turn for the server's Finished.
    for each in (*reversed(ends), *reversed(ends), ends[1]):
        with contextlib.suppress(ssl.SSLWantReadError):
            each.do_handshake()
    return ends
