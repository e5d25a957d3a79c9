"""Everything about who may come in that a start has to make or read: authority, certificates, keys, users."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from paddock.app.directory.paths import DataPaths
from paddock.app.options.settings import ServerSettings
from paddock.base.certificates import Pair
from paddock.base.directories import context_name
from paddock.server.context import ServerParts
from paddock.server.security import kubeconfig, pki
from paddock.server.security.bootstraptokens import BootstrapTokens
from paddock.server.security.identity import Identities, StaticTokenFile, TokenSource
from paddock.server.security.rbac import MASTERS
from paddock.server.security.tls import ServingContext
from paddock.server.security.tokens import AccountTokens, IssuerTerms, Keyring, keyring_of, own_keyring

_LOG = logging.getLogger(__name__)
# Certificates are checked this often.
RENEW_SECONDS = 3600.0


class ServerCredentials:
    """The server's own, and those that it takes."""

    def __init__(self, settings: ServerSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._settings = settings
        self._places = DataPaths(settings.root)
        tls = settings.tls
        # address of the kubeconfig that was written, with its certificate and key
        self._way_in: tuple[str, tuple[bytes, bytes]] | None = None
        self._now = now
        self.serving = ServingContext(self._pair, tls.clients or self._own.certificate_file, tls.least)

    @cached_property
    def _own(self) -> pki.Authority:
        """The server's own authority. Made only when somebody needs it: a test brings its own."""
        return pki.Authority(self._places.pki, self._now)

    @property
    def clients(self) -> pki.Authority | None:
        """The authority of client certificates, when it is the server's own."""
        return self._own if self._settings.tls.clients is None else None

    def _pair(self) -> Pair:
        tls = self._settings.tls
        if tls.certificate is not None and tls.key is not None:
            return tls.certificate, tls.key
        names = (*self._settings.names, self._settings.host, self._settings.advertise)
        return self._own.server(name for name in names if name)

    @property
    def trusted(self) -> bytes:
        """The certificate that clients trust to know this server: its authority, or its own certificate where that is given."""
        given = self._settings.tls.certificate
        return self._own.certificate if given is None else Path(given).read_bytes()

    def tokens(self, parts: ServerParts) -> AccountTokens:
        given = self._settings.accounts
        terms = IssuerTerms(issuers=given.issuers, audiences=given.audiences, longest_seconds=given.longest_seconds)
        return AccountTokens(self._keys(), parts.view, parts.clock, terms)

    def _keys(self) -> Keyring:
        given = self._settings.accounts
        if given.signing_key is not None:
            return keyring_of(given.signing_key, given.believed_keys)
        self._places.pki.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own_keyring(self._places.pki, given.believed_keys)

    def identities(self, tokens: AccountTokens, parts: ServerParts) -> Identities:
        """All ways to say who one is."""
        known: list[TokenSource] = []
        if self._settings.token_file is not None:
            known.append(StaticTokenFile(self._settings.token_file))
        known += [BootstrapTokens(parts.view, parts.clock), tokens]
        if self._settings.oidc is not None:
            from paddock.server.security import oidc  # noqa: PLC0415 - a client of HTTP that only this needs

            settings = self._settings.oidc
            known.append(oidc.OidcAuthenticator(settings, oidc.fetcher(settings.authority), parts.clock))
        return Identities(tuple(known), anonymous=self._settings.anonymous)

    async def renew(self) -> None:
        """Make what is about to expire anew, and take what others have renewed: the next connections are made with it."""
        if self.serving.refresh():
            _LOG.info("serving certificate replaced")
        if self._way_in is not None and self._administrator() != self._way_in[1]:
            self.write_kubeconfig(self._way_in[0])
            _LOG.info("administrator certificate renewed; copied kubeconfigs expire with the old one")

    def write_kubeconfig(self, address: str) -> bool:
        """The administrator's way in, if the server can make one: with an authority of clients that is not its own it cannot."""
        if self._settings.tls.clients is not None:
            return False
        certificate, key = given = self._administrator()
        # Two kubeconfigs that are read together must not hide each other's entries.
        name = self._settings.context or context_name(self._settings.root)
        document = kubeconfig.document(address, self.trusted, certificate, key, user=f"{name}-admin", cluster=name)
        pki.write_private(self._places.kubeconfig, document.encode())
        self._way_in = (address, given)
        return True

    def _administrator(self) -> tuple[bytes, bytes]:
        return self._own.administrator("admin", MASTERS)
