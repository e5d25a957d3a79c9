"""Certificates in TLS: those that a context shows, from memory, and those that it trusts."""

import os
import ssl
from pathlib import Path


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
        os.write(descriptor, certificate + b"\n" + key)
        # An encrypted key would make OpenSSL ask on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: "")
    finally:
        os.close(descriptor)
