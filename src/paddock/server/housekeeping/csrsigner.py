"""Signs approved requests for client certificates of this server, and forgets requests that are done with.

The signer is Kubernetes' `kubernetes.io/kube-apiserver-client`: nothing is approved by itself, and what is not a client certificate
is refused with a condition. Requests for other signers are theirs.
"""

import base64
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages, failure
from paddock.server.builtin import csr
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Options, Proposal
from paddock.server.security.pki import Authority
from paddock.server.store.contract import CommittedWrite, StoreKey

if TYPE_CHECKING:
    from cryptography import x509

COLLECTION = f"certificatesigningrequests.{csr.GROUP}"
_SERVER = "system:apiserver"
_WHO = Options(user=_SERVER, groups=("system:masters",), manager="kube-controller-manager", subresource="status")
_USAGES = ("digital signature", "key encipherment", "client auth")
_YEAR = 365 * 86_400
_HOUR, _DAY = 3600.0, 86_400.0


class CsrSigner:
    """Looks at requests that changed."""

    def __init__(self, parts: ServerParts, authority: Authority) -> None:
        self._parts = parts
        self._authority = authority
        self.chores: KeyQueue[str] = KeyQueue("certificate requests", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(COLLECTION):
            self.chores.offer(record.key.name)
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == COLLECTION and not change.deleted:
                self.chores.offer(change.key.name)

    async def _reconcile(self, name: str) -> None:
        record = self._parts.store.decided(StoreKey(COLLECTION, "", name))
        if record is None:
            return
        asked = decode(record.value)
        is_done = bool((asked.get("status") or {}).get("certificate")) or csr.has(asked, csr.FAILED) or csr.has(asked, csr.DENIED)
        if asked["spec"]["signerName"] == csr.CLIENT_SIGNER and csr.has(asked, csr.APPROVED) and not is_done:
            request, wrong = csr.read_request(asked["spec"].get("request")), _wrong(asked["spec"])
            if request is None:
                await self._say(name, self._failed("the request cannot be read"))
            else:
                await self._say(name, self._failed(wrong) if wrong else partial(self._signed, request))

    async def _say(self, name: str, change: Callable[[Data], Data]) -> None:
        resource = self._parts.registry.find(csr.GROUP, "v1", "certificatesigningrequests")
        if resource is None:
            return
        try:
            await self._parts.writer.replace(
                resource, "", name, lambda old: Proposal({**old, "metadata": dict(old["metadata"]), "status": change(old)}), _WHO
            )
        except failure.Failure as gone:
            if gone.code != 404:
                raise

    def _signed(self, request: "x509.CertificateSigningRequest", old: Data) -> Data:
        seconds = min(old["spec"].get("expirationSeconds") or _YEAR, _YEAR)
        pem = self._authority.sign_client(request, timedelta(seconds=seconds))
        return {**(old.get("status") or {}), "certificate": base64.b64encode(pem).decode()}

    def _failed(self, why: str) -> Callable[[Data], Data]:
        def status(old: Data) -> Data:
            known = (old.get("status") or {}).get("conditions") or []
            failed = {"type": csr.FAILED, "status": "True", "reason": "SignerValidationFailure", "message": why}
            return {**(old.get("status") or {}), "conditions": [*known, failed]}

        return status

    async def forget(self) -> None:
        """Remove what is decided for an hour, and what nobody has decided in a day."""
        resource = self._parts.registry.find(csr.GROUP, "v1", "certificatesigningrequests")
        now = self._parts.clock.seconds()
        for record in tuple(self._parts.store.scan(COLLECTION)) if resource is not None else ():
            asked = decode(record.value)
            is_decided = csr.has(asked, csr.APPROVED) or csr.has(asked, csr.DENIED) or csr.has(asked, csr.FAILED)
            since = _last_said(asked) if is_decided else asked["metadata"]["creationTimestamp"]
            if resource is not None and now - (ages.seconds_of(since) or now) > (_HOUR if is_decided else _DAY):
                gone = DeleteOptions(user=_SERVER, groups=("system:masters",), revision=str(record.revision))
                await self._parts.writer.delete(resource, "", record.key.name, gone)


def _last_said(asked: Data) -> str:
    said = [each.get("lastUpdateTime") or "" for each in (asked.get("status") or {}).get("conditions") or ()]
    return max(said, default="") or str(asked["metadata"]["creationTimestamp"])


def _wrong(spec: Data) -> str:
    usages = spec.get("usages") or ()
    unfit = next((each for each in usages if each not in _USAGES), None)
    if unfit is not None:
        return f"invalid usage for client certificate: {unfit}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"
