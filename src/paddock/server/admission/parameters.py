"""The parameters of policies, and the writes that their bindings are for. Both sorts of policies share them."""

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import selectors
from paddock.server.admission.matching import AdmissionAttributes, is_namespace, selector_of
from paddock.server.admission.stored import PolicyBinding
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource


class NotConfigured(Exception):
    """A policy cannot be asked as it is bound."""


def matches(binding: PolicyBinding, attempt: Attempt, admission: AdmissionContext) -> bool:
    """Return True if a binding covers a write."""
    if binding.matcher is None:
        return True
    if not binding.matcher.selects(attempt, admission) or binding.matcher.leaves_out(attempt, admission):
        return False
    if not binding.matcher.rules:
        return True
    asked = AdmissionAttributes(attempt.resource, attempt.operation, attempt.options.subresource)
    return any(rule.names_it(attempt.name) for rule, _ in binding.matcher.candidates(asked, admission))


def check_kind(kind: Data | None, admission: AdmissionContext) -> None:
    """Raise `NotConfigured` when nothing of the kind of the parameters is served."""
    if kind is not None and _resource(kind, admission) is None:
        group, _, version = (kind.get("apiVersion") or "").rpartition("/")
        raise NotConfigured(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind.get('kind')}'")


def of(kind: Data | None, binding: PolicyBinding, attempt: Attempt, admission: AdmissionContext) -> list[Data | None]:
    """The parameters that a binding names: one run of the policy for each."""
    if kind is None:
        return [None]
    resource, reference = _resource(kind, admission), binding.reference
    if reference is None or resource is None:
        # Whoever names a kind and no object gets nothing.
        return [None]
    found = _referenced(resource, reference, attempt, admission)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise NotConfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [*found]


def _referenced(resource: ServedResource, reference: Data, attempt: Attempt, admission: AdmissionContext) -> list[Data]:
    namespace = reference.get("namespace") or ""
    if resource.namespaced and not namespace:
        if is_namespace(attempt.resource) or not attempt.namespace:
            raise NotConfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
        namespace = attempt.namespace
    elif not resource.namespaced and namespace:
        raise NotConfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    view = admission.view
    if reference.get("name"):
        one = view.get(resource.collection, namespace, reference["name"])
        objects = [] if one is None else [one]
    else:
        selector = selector_of(reference.get("selector"))
        listed = view.list(resource.collection, namespace)
        objects = [each for each in listed if selectors.matches(selector, each["metadata"].get("labels") or {})]
    return [{**each, "apiVersion": resource.api_version, "kind": resource.kind} for each in objects]


def _resource(kind: Data, admission: AdmissionContext) -> ServedResource | None:
    group, _, version = (kind.get("apiVersion") or "").rpartition("/")
    return admission.registry.find_kind(group, kind.get("kind") or "", version)
