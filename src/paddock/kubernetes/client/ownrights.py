"""The rights of a client's own user, as the API server judges them."""

from collections.abc import Mapping

import msgspec
import orjson

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import RefusedRight

_GROUP = "/apis/authorization.k8s.io/v1"
_EVERY = "*"


class GrantedRule(msgspec.Struct, frozen=True):
    """A rule that grants rights; without names, on every object."""

    verbs: tuple[str, ...] = ()
    apiGroups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    resourceNames: tuple[str, ...] | None = None

    def grants(self, right: RefusedRight) -> bool:
        """Return whether a right is among those of the rule."""
        wildcards = (_EVERY, f"{_EVERY}/{right.subresource}") if right.subresource else (_EVERY,)
        return (
            _has(self.verbs, right.verb, _EVERY)
            and _has(self.apiGroups, right.group, _EVERY)
            and _has(self.resources, right.path, *wildcards)
            and (not self.resourceNames or right.name in self.resourceNames)
        )


def _has(names: tuple[str, ...] | None, *wanted: str) -> bool:
    return any(each in wanted for each in names or ())


class _Found(msgspec.Struct):
    resourceRules: tuple[GrantedRule, ...] | None = None


class _Rules(msgspec.Struct):
    status: _Found = msgspec.field(default_factory=_Found)


async def may(client: Client, attributes: Mapping[str, str]) -> bool:
    """Return whether the user has a right: verb, group, resource, subresource, namespace and name, as a SelfSubjectAccessReview does."""
    answer = orjson.loads(await _review(client, "SelfSubjectAccessReview", {"resourceAttributes": attributes}))
    return bool((answer.get("status") or {}).get("allowed"))


async def rules(client: Client, namespace: str) -> tuple[GrantedRule, ...]:
    """Return rules of the user in a namespace, those of cluster roles among them. An authorizer need not tell all of its own."""
    answer = await _review(client, "SelfSubjectRulesReview", {"namespace": namespace})
    return msgspec.json.decode(answer, type=_Rules).status.resourceRules or ()


async def _review(client: Client, kind: str, spec: Mapping[str, object]) -> bytes:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return await client.request("POST", f"{_GROUP}/{kind.lower()}s", body=orjson.dumps(body))
