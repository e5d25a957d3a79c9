"""Certificates that are shown in TLS, from memory."""

import os
import ssl


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
