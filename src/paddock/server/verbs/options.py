"""The parameters of a request besides the object: list, write and delete options from the query and the body."""

from collections.abc import Iterator
from typing import Any

from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.matching import BadSelector, FieldCondition, FieldQuery, LabelQuery, parse_fields, parse_labels
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server import bodies
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpRequest
from paddock.server.objects.reading import Query, read_number
from paddock.server.objects.requests import LARGE_BYTES, DeleteOptions, Options
from paddock.server.resources.resource import ServedResource

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_LONGEST_MANAGER = 128
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
STANDARD_FIELDS = ("metadata.name", "metadata.namespace")


def list_query(call: RequestContext) -> Query:
    """The query of a list, a watch or a deletecollection; raises a `Failure`."""
    request, route = call.request, call.route
    fields = _fields(call)
    if route.name:
        fields = FieldQuery((*fields.conditions, *parse_fields(f"metadata.name={route.name}").conditions))
    return Query(
        namespace=route.namespace if call.resource.namespaced else "",
        labels=_labels(request.parameter("labelSelector")),
        fields=fields,
        limit=max(0, read_number("limit", request.parameter("limit") or "0")),
        token=request.parameter("continue"),
        revision=request.parameter("resourceVersion"),
        match=request.parameter("resourceVersionMatch"),
    )


def _labels(text: str) -> LabelQuery:
    try:
        return parse_labels(text) if text else LabelQuery()
    except BadSelector as error:
        raise failure.bad_request(str(error)) from None


def _fields(call: RequestContext) -> FieldQuery:
    text = call.request.parameter("fieldSelector")
    if not text:
        return FieldQuery()
    try:
        query = parse_fields(text)
    except BadSelector as error:
        raise failure.bad_request(str(error)) from None
    for condition in query.conditions:
        if condition.path not in STANDARD_FIELDS and condition.path not in call.resource.selectable:
            raise failure.bad_request(f"field label not supported: {condition.path}")
    return FieldQuery(tuple(_stored(call.resource, each) for each in query.conditions))


def _stored(resource: ServedResource, condition: FieldCondition) -> FieldCondition:
    """A condition on the stored form of an object."""
    if condition.path in resource.flags and condition.value == "false":
        return FieldCondition(condition.path, "true", not condition.equal)
    path, _, otherwise = resource.stored_fields.get(condition.path, condition.path).partition("|")
    return condition._replace(path=path, otherwise=otherwise)


def write_options(call: RequestContext, *, operation: str) -> Options:
    """The options of a create, an update or a patch; raises a `Failure`."""
    request = call.request
    manager, validation, dry_run = request.parameter("fieldManager"), request.parameter("fieldValidation"), request.query.get("dryRun", [])
    found = [*_wrong_dry_run(dry_run), *_wrong_manager(manager)]
    if validation not in _VALIDATIONS:
        found.append(finding.unsupported(("fieldValidation",), validation, _VALIDATIONS, "options/validation"))
    if found:
        raise failure.invalid(failure.FailureTarget(group="meta.k8s.io", kind=f"{operation}Options"), found)
    return Options(
        user=call.user.name,
        groups=call.user.groups,
        uid=call.user.uid,
        extra=call.user.extra,
        notes=call.notes,
        given={key: request.parameter(key) for key in ("fieldManager", "fieldValidation") if key in request.query},
        manager=manager or default_manager(request.headers.get("user-agent", "")),
        field_validation=validation or "Warn",
        dry_run=bool(dry_run),
        subresource=call.route.subresource,
        is_large=len(request.body) > LARGE_BYTES,
    )


def default_manager(user_agent: str) -> str:
    """Writers that do not name themselves are called by their program."""
    return user_agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown"


def _wrong_manager(manager: str) -> Iterator[Finding]:
    path = ("fieldManager",)
    if len(manager.encode()) > _LONGEST_MANAGER:
        yield finding.too_long(path, _LONGEST_MANAGER, "options/manager", "bytes")
    elif not manager.isprintable():
        at, strange = next((index, each) for index, each in enumerate(manager) if not each.isprintable())
        yield finding.invalid(path, manager, f"invalid character U+{ord(strange):04X} (at position {at})", "options/manager")


def _wrong_dry_run(values: list[str]) -> Iterator[Finding]:
    if any(value != "All" for value in values):
        yield finding.unsupported(("dryRun",), values, ("All",), "options/dry-run")


def _grace(said: dict[str, Any], request: HttpRequest) -> int | None:
    """The patience a deletion has, from its body, else from the query."""
    given = said.get("gracePeriodSeconds")
    if given is None and (text := request.parameter("gracePeriodSeconds")):
        given = read_number("gracePeriodSeconds", text)
    return given if isinstance(given, int) else None


def delete_options(call: RequestContext) -> DeleteOptions:
    """The options of a deletion, from the body and the query; raises a `Failure`."""
    about = failure.FailureTarget(group="meta.k8s.io", kind="DeleteOptions")
    said: dict[str, Any] = bodies.read_object(call.request).data if call.request.body else {}
    request = call.request
    if said.get("kind", "DeleteOptions") != "DeleteOptions":
        raise failure.bad_request(f"the body must be a DeleteOptions object, and is a {said['kind']}")
    propagation = said.get("propagationPolicy") or request.parameter("propagationPolicy")
    orphan = said.get("orphanDependents")
    if orphan is None and "orphanDependents" in request.query:
        orphan = request.flag("orphanDependents")
    if orphan is not None:
        if propagation:
            why = "orphanDependents and deletionPropagation cannot be both set"
            raise failure.invalid(about, [finding.invalid(("propagationPolicy",), propagation, why, "options/propagation")])
        propagation = "Orphan" if orphan else "Background"
    elif propagation and propagation not in _PROPAGATIONS:
        wrong = finding.unsupported(("propagationPolicy",), propagation, (*_PROPAGATIONS, "nil"), "options/propagation")
        raise failure.invalid(about, [wrong])
    preconditions = said.get("preconditions") or {}
    dry_run = said.get("dryRun") or request.query.get("dryRun", [])
    if not isinstance(preconditions, dict) or not isinstance(dry_run, list):
        raise failure.bad_request("the body must be a DeleteOptions object")
    if wrong_run := list(_wrong_dry_run(dry_run)):
        raise failure.invalid(about, wrong_run)
    return DeleteOptions(
        user=call.user.name,
        groups=call.user.groups,
        user_uid=call.user.uid,
        extra=call.user.extra,
        notes=call.notes,
        dry_run=bool(dry_run),
        grace=_grace(said, request),
        propagation=str(propagation or ""),
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
    )
