"""Everything about who may come in that a start has to make or read: authority, certificates, keys, users."""

from pathlib import Path

from paddock.apiserver.parts import Parts
from paddock.apiserver.security import kubeconfig, pki
from paddock.apiserver.security.identity import Identities, TokenFile, TokenSource
from paddock.apiserver.security.rbac import MASTERS
from paddock.apiserver.security.tls import Pair, Serving
from paddock.apiserver.security.tokens import AccountTokens, Keyring, Terms, keyring_of, own_keyring
from paddock.app.places import Places
from paddock.app.settings import Settings


class Credentials:
    """The server's own, and those that it takes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._places = Places(settings.root)
        tls = settings.tls
        # Made only when somebody needs it: a test brings its own.
        own = tls.certificate is None or tls.clients is None
        self._authority = pki.Authority(self._places.pki) if own else None
        self.serving = Serving(self._pair, tls.clients or self._own.certificate_file, tls.least)

    @property
    def _own(self) -> pki.Authority:
        assert self._authority is not None
        return self._authority

    def _pair(self) -> Pair:
        tls = self._settings.tls
        if tls.certificate is not None and tls.key is not None:
            return tls.certificate, tls.key
        names = (*self._settings.names, self._settings.host, self._settings.advertise)
        return self._own.server(name for name in names if name)

    @property
    def trusted(self) -> bytes:
        """What clients shall trust to know this server: its authority, or its certificate where somebody else made that."""
        given = self._settings.tls.certificate
        return self._own.certificate if given is None else Path(given).read_bytes()

    def tokens(self, parts: Parts) -> AccountTokens:
        """Tokens of ServiceAccounts."""
        given = self._settings.accounts
        terms = Terms(issuers=given.issuers, audiences=given.audiences, longest_seconds=given.longest_seconds)
        return AccountTokens(self._keys(), parts.view, parts.clock, terms)

    def _keys(self) -> Keyring:
        given = self._settings.accounts
        if given.signing_key is not None:
            return keyring_of(given.signing_key, given.believed_keys)
        self._places.pki.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own_keyring(self._places.pki, given.believed_keys)

    def identities(self, tokens: AccountTokens) -> Identities:
        """All ways to say who one is."""
        known: list[TokenSource] = []
        if self._settings.token_file is not None:
            known.append(TokenFile(self._settings.token_file))
        return Identities((*known, tokens), anonymous=self._settings.anonymous)

    def write_kubeconfig(self, address: str) -> bool:
        """The administrator's way in, if the server can make one: with an authority of clients that is not its own it cannot."""
        if self._settings.tls.clients is not None:
            return False
        certificate, key = self._own.client("admin", (MASTERS,))
        document = kubeconfig.document(address, self.trusted, certificate, key)
        pki.write_private(self._places.kubeconfig, document.encode())
        return True
