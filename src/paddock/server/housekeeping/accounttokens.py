"""Secrets with tokens of ServiceAccounts: filled in when they are made, removed when their account goes.

These tokens do not expire. Kubernetes makes none by itself any more, and neither does this server: somebody has to create a Secret of
type `kubernetes.io/service-account-token` that names the account in an annotation.
"""

import base64

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Options, Proposal
from paddock.server.security.tokens import AccountTokens
from paddock.server.store.contract import CommittedWrite, StoreKey

SECRETS, ACCOUNTS = "secrets", "serviceaccounts"
TYPE = "kubernetes.io/service-account-token"
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
_WHO = Options(user="system:serviceaccount:kube-system:tokens-controller", groups=("system:masters",), manager="kube-controller-manager")
_MARK = b'"' + TYPE.encode() + b'"'


class TokenSecretController:
    """Looks at the Secrets that hold tokens."""

    def __init__(self, parts: ServerParts, tokens: AccountTokens, authority: str) -> None:
        self._parts = parts
        self._tokens = tokens
        self._authority = base64.b64encode(authority.encode()).decode()
        self.chores: KeyQueue[tuple[str, str]] = KeyQueue("token secrets", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        self._offer_all("")
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == SECRETS and not change.deleted and _MARK in change.value:
                self.chores.offer((change.key.namespace, change.key.name))
            elif change.key.collection == ACCOUNTS:
                self._offer_all(change.key.namespace)

    def _offer_all(self, namespace: str) -> None:
        for record in self._parts.store.scan(SECRETS):
            if _MARK in record.value and namespace in ("", record.key.namespace):
                self.chores.offer((record.key.namespace, record.key.name))

    async def _reconcile(self, key: tuple[str, str]) -> None:
        namespace, name = key
        record = self._parts.store.decided(StoreKey(SECRETS, namespace, name))
        resource = self._parts.registry.find("", "v1", SECRETS)
        if record is None or resource is None:
            return
        secret = decode(record.value)
        if secret.get("type") != TYPE or secret["metadata"].get("deletionTimestamp"):
            return
        notes = secret["metadata"].get("annotations") or {}
        account = self._parts.view.get(ACCOUNTS, namespace, notes.get(_NAME, ""))
        try:
            if account is None or notes.get(_UID, account["metadata"]["uid"]) != account["metadata"]["uid"]:
                await self._parts.writer.delete(resource, namespace, name, DeleteOptions(user=_WHO.user, groups=_WHO.groups))
            elif not self._is_filled(secret, account):
                await self._parts.writer.replace(resource, namespace, name, lambda old: self._filled(old, account), _WHO)
        except failure.Failure as said:
            if said.code != 404:
                raise

    def _is_filled(self, secret: Data, account: Data) -> bool:
        data = secret.get("data") or {}
        notes = secret["metadata"].get("annotations") or {}
        return bool(data.get("token")) and data.get("ca.crt") == self._authority and bool(data.get("namespace")) and _UID in notes

    def _filled(self, old: Data, account: Data) -> Proposal:
        meta = {**old["metadata"], "annotations": {**(old["metadata"].get("annotations") or {}), _UID: account["metadata"]["uid"]}}
        data = dict(old.get("data") or {})
        if not data.get("token"):
            token = self._tokens.issue_for_secret(account, old["metadata"]["name"])
            data["token"] = base64.b64encode(token.encode()).decode()
        data["ca.crt"] = self._authority
        data["namespace"] = base64.b64encode(old["metadata"]["namespace"].encode()).decode()
        return Proposal({**old, "metadata": meta, "data": data})
