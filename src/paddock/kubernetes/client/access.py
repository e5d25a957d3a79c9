"""Access to a server: its address, its CA and our credentials, from a kubeconfig or a ServiceAccount."""

from typing import Protocol

import msgspec

from paddock.kubernetes.client.transport import Headers


class ClientCertificate(msgspec.Struct, frozen=True):
    """A certificate with its key, as PEM."""

    certificate: bytes
    key: bytes


class Credential(msgspec.Struct, frozen=True):
    """The credentials of a request."""

    headers: Headers = ()
    certificate: ClientCertificate | None = None


class CredentialProvider(Protocol):
    """Knows what to show now."""

    async def current(self) -> Credential:
        """The credential to use; raises `BadAccess`."""

    def refused(self, credential: Credential) -> bool:
        """The server answered 401 to it. Whether another one may be had."""


class StaticCredential:
    """A credential that never changes."""

    def __init__(self, credential: Credential = Credential()) -> None:  # noqa: B008 - frozen
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    def refused(self, credential: Credential) -> bool:
        return False


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has to be known of a server to talk to it."""

    # https://host:port/prefix
    server: str
    # PEM of the authorities to trust; empty: those of the system
    authority: bytes = b""
    # where they come from, for errors
    authority_source: str = "certificate-authority-data"
    # checked instead of the host's name, and sent as the name that is wanted
    tls_name: str = ""
    insecure: bool = False
    # http, https or socks5; empty: what the environment says
    proxy: str = ""
    # how errors name the server; empty: its host and port
    title: str = ""
    credentials: CredentialProvider
    namespace: str = "default"


def bearer(token: str) -> Credential:
    return Credential((("authorization", f"Bearer {token}"),))
