"""Cluster roles that are made of others: their rules are the rules of all roles that their selectors choose."""

from paddock.base.jsondata import Data
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Options, Proposal
from paddock.server.security.rbac import CLUSTER_ROLES
from paddock.server.store.contract import CommittedWrite, StoreKey

_WHO = Options(user="system:apiserver", groups=("system:masters",), manager="clusterrole-aggregation-controller")


class RoleAggregationController:
    """Keeps aggregated roles up to date."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self.chores: KeyQueue[str] = KeyQueue("role aggregation", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        self._offer_all()
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        if any(change.key.collection == CLUSTER_ROLES for change in changes):
            self._offer_all()

    def _offer_all(self) -> None:
        for record in self._parts.store.scan(CLUSTER_ROLES):
            if b'"aggregationRule"' in record.value:
                self.chores.offer(record.key.name)

    async def _reconcile(self, name: str) -> None:
        record = self._parts.store.get(StoreKey(CLUSTER_ROLES, "", name))
        resource = self._parts.registry.find("rbac.authorization.k8s.io", "v1", "clusterroles")
        if record is None or resource is None:
            return
        role = decode(record.value)
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        rules = self._collected(name, selectors)
        if selectors and rules != (role.get("rules") or []):
            await self._parts.writer.replace(
                resource, "", name, lambda old: Proposal({**old, "metadata": dict(old["metadata"]), "rules": rules}), _WHO
            )

    def _collected(self, name: str, selectors: list[Data]) -> list[Data]:
        rules: list[Data] = []
        for record in self._parts.store.scan(CLUSTER_ROLES):
            role = decode(record.value)
            labels = role["metadata"].get("labels") or {}
            if record.key.name != name and any(_matches(selector, labels) for selector in selectors):
                rules.extend(rule for rule in role.get("rules") or () if rule not in rules)
        return rules


def _matches(selector: Data, labels: Data) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _holds(expression: Data, labels: Data) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None
