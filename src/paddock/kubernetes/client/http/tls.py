"""TLS contexts from what an `Access` says."""

import ssl

from paddock.base import certificates
from paddock.kubernetes.client.access import Access, ClientCertificate
from paddock.kubernetes.client.errors import BadAccess


def context(access: Access, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """A context that trusts what the access trusts and shows the certificate, if there is one."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["http/1.1"])
    if access.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif access.authority:
        try:
            made.load_verify_locations(cadata=access.authority.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise BadAccess("the authority to trust is no certificate", why=str(error)) from error
    else:
        made.load_default_certs()
    if certificate is not None:
        _show(made, certificate)
    return made


def _show(made: ssl.SSLContext, certificate: ClientCertificate) -> None:
    try:
        certificates.show(made, certificate.certificate, certificate.key)
    except (ssl.SSLError, OSError) as error:
        raise BadAccess("the client certificate and its key cannot be used", why=str(error)) from error
