"""Rules for webhook configurations, policies and bindings besides the types of their fields."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.resources.strategy import Strategy, WriteContext

RULE = "core/admission"
REVIEW_VERSIONS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"
_SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z", re.ASCII)
_MOST_CONDITIONS = 64


class WebhookStrategy(Strategy):
    """Configurations of webhooks."""

    def counts_generation(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Names, rules, addresses, conditions."""
        seen = set()
        before = [each.get("matchConditions") for each in (old or {}).get("webhooks") or ()]
        hooks = new.get("webhooks") or []
        unchanged = old is not None and before == [each.get("matchConditions") for each in hooks]
        for index, hook in enumerate(hooks):
            path: Path = ("webhooks", index)
            yield from _webhook(path, hook)
            if not unchanged:
                yield from conditions((*path, "matchConditions"), hook.get("matchConditions") or [], params=False)
            name = hook.get("name")
            if name in seen:
                yield finding.duplicate((*path, "name"), name, RULE)
            if name:
                seen.add(name)


def _webhook(path: Path, hook: Data) -> Iterator[Finding]:
    name = hook.get("name") or ""
    if not name:
        yield finding.required((*path, "name"), RULE)
    elif not names.is_subdomain(name):
        yield finding.invalid((*path, "name"), name, _SUBDOMAIN, RULE)
    elif name.count(".") < 2:
        yield finding.invalid((*path, "name"), name, "should be a domain with at least three segments separated by dots", RULE)
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from check_rule((*path, "rules", index), rule)
    if hook.get("sideEffects") is None:
        yield finding.required((*path, "sideEffects"), RULE, "must specify one of None, NoneOnDryRun")
    seconds = hook.get("timeoutSeconds")
    if isinstance(seconds, int) and not 1 <= seconds <= 30:
        yield finding.invalid((*path, "timeoutSeconds"), seconds, "the timeout value must be between 1 and 30 seconds", RULE)
    for selector in ("namespaceSelector", "objectSelector"):
        yield from check_selector((*path, selector), hook.get(selector))
    yield from _client((*path, "clientConfig"), hook.get("clientConfig") or {})
    yield from _versions((*path, "admissionReviewVersions"), hook.get("admissionReviewVersions") or [])


def _versions(path: Path, versions: list[str]) -> Iterator[Finding]:
    known = ", ".join(REVIEW_VERSIONS)
    if not versions:
        yield finding.required(path, RULE, f"must specify one of {known}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield finding.invalid((*path, index), version, "duplicate version", RULE)
        elif not _LABEL_1035.match(version):
            yield finding.invalid(
                (*path, index), version, "a DNS-1035 label must consist of lower case alphanumeric characters or '-'", RULE
            )
    if not set(versions) & set(REVIEW_VERSIONS):
        yield finding.invalid(path, versions, f"must include at least one of {known}", RULE)


def _client(path: Path, config: Data) -> Iterator[Finding]:
    url, service = config.get("url"), config.get("service")
    if (url is None) is (service is None):
        yield finding.required(path, RULE, "exactly one of url or service is required")
    elif service is None:
        yield from _url((*path, "url"), url or "")
    else:
        yield from _service((*path, "service"), service)


def _url(path: Path, url: str) -> Iterator[Finding]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield finding.required(path, RULE, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield finding.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}", RULE)
    if not parts.netloc:
        yield finding.invalid(path, "", f"host must be specified{_FORM}", RULE)
    for value, what in ((parts.username, "user information is"), (parts.fragment, "fragments are"), (parts.query, "query parameters are")):
        if value:
            yield finding.invalid(path, value, f"{what} not permitted in the URL", RULE)


def _service(path: Path, service: Data) -> Iterator[Finding]:
    for name in ("name", "namespace"):
        if not service.get(name):
            yield finding.required((*path, name), RULE)
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= 65535:
        yield finding.invalid((*path, "port"), port, "port is not valid: must be between 1 and 65535, inclusive", RULE)
    where = service.get("path")
    if not where or where == "/":
        return
    if not where.startswith("/"):
        yield finding.invalid((*path, "path"), where, "must start with a '/'", RULE)
    for index, step in enumerate(where.removeprefix("/").removesuffix("/").split("/")):
        if not step:
            yield finding.invalid((*path, "path"), where, f"segment[{index}] may not be empty", RULE)
        elif not names.is_subdomain(step):
            yield finding.invalid((*path, "path"), where, f"segment[{index}]: {_SUBDOMAIN}", RULE)


def check_rule(path: Path, rule: Data) -> Iterator[Finding]:
    """Yield the mistakes in a rule of requests."""
    for member, what in (("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(member) or []
        if not values:
            yield finding.required((*path, member), RULE)
        elif len(values) > 1 and "*" in values:
            yield finding.invalid((*path, member), values, f"if '*' is present, must not specify other {what}", RULE)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield finding.required((*path, "apiVersions", index), RULE)
    yield from _resources((*path, "resources"), rule.get("resources") or [])


def _resources(path: Path, resources: list[str]) -> Iterator[Finding]:
    if not resources:
        yield finding.required(path, RULE)
    whole, everywhere = set(), set()
    for index, each in enumerate(resources):
        if not each:
            yield finding.required((*path, index), RULE)
            continue
        plural, slash, sub = each.partition("/")
        if not slash:
            continue
        if plural in whole:
            yield finding.invalid((*path, index), each, f"if '{plural}/*' is present, must not specify {each}", RULE)
        if sub in everywhere:
            yield finding.invalid((*path, index), each, f"if '*/{sub}' is present, must not specify {each}", RULE)
        if sub == "*":
            whole.add(plural)
        if plural == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        yield finding.invalid(path, resources, "if '*/*' is present, must not specify other resources", RULE)
    if "*" in resources and any(each and each != "*" and "/" not in each for each in resources):
        yield finding.invalid(path, resources, "if '*' is present, must not specify other resources without subresources", RULE)


def check_selector(path: Path, selector: Data | None) -> Iterator[Finding]:
    """Yield the mistakes in a label selector besides the syntax of its labels."""
    for index, each in enumerate((selector or {}).get("matchExpressions") or ()):
        operator, values = each.get("operator"), each.get("values") or []
        place = (*path, "matchExpressions", index, "values")
        if operator in ("In", "NotIn") and not values:
            yield finding.required(place, RULE, "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield finding.forbidden(place, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'", RULE)
        for at, value in enumerate(values):
            if not names.is_label_value(value):
                why = "a valid label must be an empty string or consist of alphanumeric characters"
                yield finding.invalid((*place, at), value, why, RULE)


def conditions(path: Path, said: list[Data], *, params: bool) -> Iterator[Finding]:
    """Yield the mistakes in match conditions."""
    seen = set()
    if len(said) > _MOST_CONDITIONS:
        yield finding.too_many(path, len(said), _MOST_CONDITIONS, RULE)
    for index, each in enumerate(said):
        name, text, place = each.get("name") or "", (each.get("expression") or "").strip(), (*path, index)
        if text:
            yield from check_expression((*place, "expression"), text, "bool", params=params)
        else:
            yield finding.required((*place, "expression"), RULE)
        if not name:
            yield finding.required((*place, "name"), RULE)
        elif not names.is_qualified(name):
            yield finding.invalid((*place, "name"), name, names.WHY_QUALIFIED, RULE)
        if name and name in seen:
            yield finding.duplicate((*place, "name"), name, RULE)
        seen.add(name)


def check_expression(
    path: Path, text: str, *kinds: str, params: bool, authorizer: bool = True, known: tuple[str, ...] | None = None
) -> Iterator[Finding]:
    """Yield the mistake in an expression; `kinds` are the types it may have, `known` the names below `variables`."""
    from paddock.server.admission import expressions  # noqa: PLC0415 - most servers never see an expression

    wrong = expressions.check(text, expressions.Scope(params, authorizer, known), kinds)
    if wrong:
        yield finding.invalid(path, text, wrong, RULE)
