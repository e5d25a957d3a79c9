"""Access to the metrics: the API server says who a token belongs to, and whether that user may `get` the page.

The rights are those of a non-resource URL, as for the metrics of Kubernetes' own programs. Both answers are kept for a while, so that
a scrape costs no request each time.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from typing import Any

import msgspec
import orjson

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.kubernetes.client.client import Client
from paddock.server.edge.http import HttpRequest, HttpResponse

_LOG = logging.getLogger(__name__)
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
# A right that was taken away ends so late at the latest; one that was granted begins so late.
_ALLOWED_SECONDS, _REFUSED_SECONDS = 60.0, 10.0
# A scraper waits for ten seconds.
_PATIENCE = 8.0
_MOST, _AT_A_TIME = 1000, 4


class MetricsVerdict(msgspec.Struct, frozen=True):
    """The API server's answer about a token."""

    code: int
    text: str = ""


ALLOWED = MetricsVerdict(200)
UNKNOWN = MetricsVerdict(401, "send a token of the cluster: Authorization: Bearer TOKEN")


class MetricsAccess:
    """Judges requests for the metrics."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        # by token, verb and path: until when, and what
        self._verdicts: OrderedDict[tuple[bytes, str, str], tuple[float, MetricsVerdict]] = OrderedDict()
        # Tokens that somebody makes up must not become a flood of requests to the API server.
        self._gate = asyncio.Semaphore(_AT_A_TIME)
        self._reported = ""

    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Return the answer to a request that may not see the metrics."""
        verdict = await self._verdict(request)
        if verdict.code == 200:
            return None
        headers = [("content-type", "text/plain; charset=utf-8"), ("cache-control", "no-store")]
        if verdict.code == 401:
            headers.append(("www-authenticate", "Bearer"))
        return HttpResponse(verdict.code, f"{verdict.text}\n".encode(), tuple(headers))

    async def _verdict(self, request: HttpRequest) -> MetricsVerdict:
        token = bearer(request.headers.get("authorization", ""))
        if not token:
            return UNKNOWN
        verb = request.method.lower()
        key = (hashlib.sha256(token.encode()).digest(), verb, request.path)
        until, verdict = self._verdicts.get(key, (0.0, UNKNOWN))
        if self._clock.seconds() < until:
            return verdict
        try:
            async with asyncio.timeout(_PATIENCE), self._gate:
                verdict = await self._review(token, verb, request.path)
        except (PaddockError, TimeoutError) as error:
            return self._failed(str(error) or f"no answer within {_PATIENCE:g} s")
        self._reported = ""
        self._keep(key, verdict)
        return verdict

    async def _review(self, token: str, verb: str, path: str) -> MetricsVerdict:
        status = await self._ask(TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", {"token": token})
        user = status.get("user") or {}
        if not status.get("authenticated"):
            return UNKNOWN
        name = str(user.get("username", ""))
        spec = {"user": name, "uid": user.get("uid", ""), "groups": user.get("groups") or [], "extra": user.get("extra") or {}}
        attributes = {"path": path, "verb": verb}
        review = await self._ask(
            ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", {**spec, "nonResourceAttributes": attributes}
        )
        if review.get("allowed") and not review.get("denied"):
            return ALLOWED
        return MetricsVerdict(403, f'{name} may not {verb} {path}: grant the verb "{verb}" on the nonResourceURL {path} in a ClusterRole')

    async def _ask(self, path: str, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = orjson.dumps({"apiVersion": version, "kind": kind, "spec": spec})
        answer: dict[str, Any] = orjson.loads(await self._client.request("POST", path, body=body, seconds=_PATIENCE))
        return answer.get("status") or {}

    def _failed(self, problem: str) -> MetricsVerdict:
        if problem != self._reported:
            _LOG.warning("access to the metrics cannot be judged", extra={"error": problem})
        self._reported = problem
        return MetricsVerdict(500, "the API server did not judge this request; the operator's log says why")

    def _keep(self, key: tuple[bytes, str, str], verdict: MetricsVerdict) -> None:
        seconds = _ALLOWED_SECONDS if verdict.code == 200 else _REFUSED_SECONDS
        self._verdicts[key] = self._clock.seconds() + seconds, verdict
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > _MOST:
            self._verdicts.popitem(last=False)


def bearer(header: str) -> str:
    """Return the token of an Authorization header; empty for another scheme, or none."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
