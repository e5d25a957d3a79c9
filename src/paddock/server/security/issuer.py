"""The issuer's configuration and keys, with which others check tokens of ServiceAccounts by themselves."""

from urllib.parse import urlsplit

import orjson

from paddock.kubernetes.meta import failure
from paddock.server.context import User
from paddock.server.edge.http import HttpRequest, HttpResponse
from paddock.server.security.tokens import AccountTokens

CONFIGURATION, KEYS = "/.well-known/openid-configuration", "/openid/v1/jwks"
_CACHED = ("cache-control", "public, max-age=3600")


class Issuer:
    """Serves both documents. Who may read them is a matter of RBAC, as for every path."""

    def __init__(self, tokens: AccountTokens, keys_uri: str) -> None:
        self._tokens = tokens
        self._keys_uri = keys_uri

    async def answer(self, request: HttpRequest, user: User) -> HttpResponse:
        """The document of a path."""
        if request.method not in ("GET", "HEAD"):
            raise failure.method_not_allowed()
        issuer = self._tokens.terms.issuers[0]
        # The standard knows no other issuers than these.
        if urlsplit(issuer).scheme != "https" or request.path not in (CONFIGURATION, KEYS):
            raise failure.no_such_path()
        keys = self._tokens.published()
        if request.path == KEYS:
            return HttpResponse(200, orjson.dumps(keys), (("content-type", "application/jwk-set+json"), _CACHED))
        said = {
            "issuer": issuer,
            "jwks_uri": self._keys_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key["alg"] for key in keys["keys"]}),
        }
        return HttpResponse(200, orjson.dumps(said), (("content-type", "application/json"), _CACHED))
