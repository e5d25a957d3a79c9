"""Match conditions, and the values that expressions see of a write."""

from paddock.base.jsondata import Data
from paddock.kubernetes.schema.cel.functions.authorization import Authorizer, ResourceCheck
from paddock.server.admission import questions
from paddock.server.admission.expressions import CONDITIONS_LIMIT, Activation, ExpressionFailed, Scope
from paddock.server.admission.matching import is_namespace
from paddock.server.admission.world import AccessQuestion, AdmissionContext
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource

Conditions = tuple[tuple[str, str], ...]


class UndecidedConditions(Exception):
    """Some condition has no value, and none is false."""


async def values(attempt: Attempt, resource: ServedResource, admission: AdmissionContext) -> Data:
    """Return the values that the names in an expression have for a write."""
    new, old = await questions.objects(attempt, resource)
    own = attempt.resource
    asked = questions.request(attempt, resource)
    authorizer = Authorizer(attempt.options.user, attempt.options.groups, admission.judge or _nobody)
    namespace = asked.get("namespace", "")
    check = ResourceCheck(authorizer, own.group, own.plural, attempt.options.subresource, namespace, attempt.name)
    return {
        "object": new,
        "oldObject": old,
        "request": asked,
        "namespaceObject": None if is_namespace(own) or not own.namespaced else admission.view.get("namespaces", "", attempt.namespace),
        "authorizer": authorizer,
        "authorizer.requestResource": check,
    }


def _nobody(question: AccessQuestion) -> bool:
    """Nobody may do anything where nobody decides."""
    return False


async def hold(conditions: Conditions, attempt: Attempt, resource: ServedResource, admission: AdmissionContext) -> bool:
    """Return whether all conditions hold; raise `UndecidedConditions` when that is unknown."""
    return decide(conditions, Activation(await values(attempt, resource, admission), Scope(False), limit=CONDITIONS_LIMIT))


def decide(conditions: Conditions, activation: Activation) -> bool:
    """Return whether all conditions hold. One that is false outweighs one that has no value."""
    wrong: list[str] = []
    for _, text in conditions:
        try:
            if activation.value(text) is not True:
                return False
        except ExpressionFailed as error:
            wrong.append(str(error))
    if wrong:
        raise UndecidedConditions(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    return True
