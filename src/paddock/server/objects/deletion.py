"""The effect of a DELETE on an object (docs/spec/kube-api.md section 5.1). Pure."""

from typing import Protocol

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema import finding
from paddock.server.resources.resource import ServedResource

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
PROPAGATIONS = ("Orphan", "Background", "Foreground")
_ABOUT = failure.FailureTarget(group="meta.k8s.io", kind="DeleteOptions")


class DeletionTerms(Protocol):
    """The part of the options that matters here."""

    @property
    def propagation(self) -> str: ...
    @property
    def grace(self) -> int | None: ...
    @property
    def uid(self) -> str | None: ...
    @property
    def revision(self) -> str | None: ...


def check_preconditions(resource: ServedResource, old: Data, asked: DeletionTerms) -> None:
    """Refuse when the object is not the one the client means."""
    meta = old["metadata"]
    about = resource.about(meta.get("name", ""))
    if asked.propagation and asked.propagation not in PROPAGATIONS:
        wrong = finding.unsupported(("propagationPolicy",), asked.propagation, PROPAGATIONS, "delete/propagation")
        raise failure.invalid(_ABOUT, [wrong])
    if asked.uid is not None and asked.uid != meta.get("uid"):
        why = f"the UID in the precondition ({asked.uid}) does not match the UID in record ({meta.get('uid')})"
        raise failure.conflict(about, f"{why}. The object might have been deleted and then recreated")
    if asked.revision is not None and asked.revision != meta.get("resourceVersion"):
        why = f"the ResourceVersion in the precondition ({asked.revision}) does not match the ResourceVersion in record"
        raise failure.conflict(about, f"{why} ({meta.get('resourceVersion')}). The object might have been modified")


def details(asked: DeletionTerms) -> Data:
    """The options of a deletion as an object shows them."""
    preconditions = {"uid": asked.uid, "resourceVersion": asked.revision}
    preconditions = {key: value for key, value in preconditions.items() if value is not None}
    made: Data = {"preconditions": preconditions} if preconditions else {}
    if asked.grace is not None:
        made["gracePeriodSeconds"] = asked.grace
    return {**made, "propagationPolicy": asked.propagation} if asked.propagation else made


def marked(resource: ServedResource, old: Data, asked: DeletionTerms, *, now: str) -> Data:
    """The object as it is after the request, if anything still holds it: marked, with the finalizers of the policy."""
    new = copied(old)
    meta = new["metadata"]
    finalizers = [each for each in meta.get("finalizers") or [] if each not in (ORPHAN, FOREGROUND)]
    policy = asked.propagation or _standing_policy(meta.get("finalizers") or [])
    if not resource.strategy.has_dependents():
        policy = "Background"
    if policy == "Orphan":
        finalizers.append(ORPHAN)
    elif policy == "Foreground":
        finalizers.append(FOREGROUND)
    if finalizers != (meta.get("finalizers") or []):
        meta["finalizers"] = finalizers
    if not finalizers:
        meta.pop("finalizers", None)
    held = finalizers or resource.strategy.holds_deletion(new)
    grace = resource.strategy.grace_seconds(old, asked.grace)
    if held and not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = resource.strategy.deletion_time(now, grace)
        meta["deletionGracePeriodSeconds"] = grace
        if resource.strategy.counts_generation():
            meta["generation"] = meta.get("generation", 0) + 1
    elif held and asked.grace is not None:
        # Whoever asks again may be less patient, and never more.
        meta["deletionGracePeriodSeconds"] = min(meta.get("deletionGracePeriodSeconds", 0), grace)
    return resource.strategy.mark_deleted(new)


def _standing_policy(finalizers: list[str]) -> str:
    """Without a wish the policy stays what an earlier deletion made it."""
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
