"""The status in the users' API: the cluster's, word for word, and our own facts (docs/spec/kubermatic.md section 3). Pure."""

import msgspec

from paddock.base.jsondata import Data
from paddock.kubevirt.kinds.extendedsources import RESOLVED

FAILURE = "Failure"


class ConditionText(msgspec.Struct, frozen=True):
    type: str
    status: str
    reason: str
    message: str = ""


def mirrored(before: Data, there: Data | None, ours: tuple[ConditionText, ...], now: str) -> Data:
    """The status: the cluster's, with our conditions in place of any of the same type."""
    made = dict(there or {})
    types = {each.type for each in ours}
    conditions = [each for each in made.get("conditions") or () if each.get("type") not in {*types, RESOLVED}]
    known = {each.get("type"): each for each in before.get("conditions") or ()}
    for each in ours:
        old = known.get(each.type) or {}
        since = old["lastTransitionTime"] if old.get("status") == each.status and old.get("lastTransitionTime") else now
        said = {"type": each.type, "status": each.status, "reason": each.reason, "lastTransitionTime": since}
        conditions.append({**said, "message": each.message} if each.message else said)
    made.pop("conditions", None)
    return {**made, "conditions": conditions} if conditions else made
