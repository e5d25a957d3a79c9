"""The rules of a pod's spec that the table cannot say, with kube-apiserver's words. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from paddock.base import names, quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding, Path

RULE = "core/pod"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_PORT = "must be between 1 and 65535, inclusive"
_NOT_NEGATIVE = "must be greater than or equal to 0"
_LONGEST_DEADLINE = 2**31 - 1
_PORT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_ENV_NAME = re.compile(r"[ -<>-~]+\Z", re.ASCII)
_LONGEST_SYSCTL = 253
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_TEXT = rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$"
_SYSCTL = re.compile(rf"({_SYSCTL_SEGMENT}[./])*{_SYSCTL_SEGMENT}\Z", re.ASCII)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")


def check(spec: Data, path: Path) -> Iterator[Finding]:
    """Everything wrong with the spec of a pod or of a template."""
    volumes = spec.get("volumes") or []
    yield from _volumes(volumes, (*path, "volumes"))
    known = {str(each.get("name")) for each in volumes}
    seen: set[str] = set()
    for word in ("containers", "initContainers", "ephemeralContainers"):
        for index, each in enumerate(spec.get(word) or ()):
            place = (*path, word, index)
            yield from _container(each, place, known)
            if each.get("name") and each["name"] in seen:
                yield finding.duplicate((*place, "name"), each["name"], RULE)
            seen.add(each.get("name", ""))
    for word in ("serviceAccountName", "nodeName"):
        if spec.get(word) and not names.is_subdomain(spec[word]):
            yield finding.invalid((*path, word), spec[word], _SUBDOMAIN, RULE)
    for word in ("hostname", "subdomain"):
        if spec.get(word) and not names.is_label(spec[word]):
            yield finding.invalid((*path, word), spec[word], LABEL, RULE)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_DEADLINE:
        yield finding.invalid((*path, "activeDeadlineSeconds"), deadline, f"must be between 1 and {_LONGEST_DEADLINE}, inclusive", RULE)
    for key in spec.get("nodeSelector") or ():
        if not names.is_qualified(key):
            yield finding.invalid((*path, "nodeSelector"), key, names.WHY_QUALIFIED, RULE)
    yield from _spreading(spec.get("topologySpreadConstraints") or (), (*path, "topologySpreadConstraints"))
    yield from _sysctls((spec.get("securityContext") or {}).get("sysctls") or (), (*path, "securityContext", "sysctls"))


def _sysctls(sysctls: Iterable[Data], path: Path) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, each in enumerate(sysctls):
        name, place = str(each.get("name") or ""), (*path, index, "name")
        if not name:
            yield finding.required(place, RULE)
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.match(name):
            yield finding.invalid(place, name, f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL_TEXT}", RULE)
        elif name in seen:
            yield finding.duplicate(place, name, RULE)
        seen.add(name)


def _volumes(volumes: list[Data], path: Path) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, each in enumerate(volumes):
        name, place = str(each.get("name") or ""), (*path, index)
        if name and not names.is_label(name):
            yield finding.invalid((*place, "name"), name, LABEL, RULE)
        elif name in seen:
            yield finding.duplicate((*place, "name"), name, RULE)
        seen.add(name)
        sources = [word for word in each if word != "name"]
        # One of them is the volume; the order in which a client wrote them says nothing.
        for word in sorted(sources, key=lambda word: word == "hostPath")[1:]:
            yield finding.forbidden((*place, word), "may not specify more than 1 volume type", RULE)


def _container(container: Data, path: Path, volumes: set[str]) -> Iterator[Finding]:
    name = str(container.get("name") or "")
    if name and not names.is_label(name):
        yield finding.invalid((*path, "name"), name, LABEL, RULE)
    if not container.get("image"):
        yield finding.required((*path, "image"), RULE)
    yield from _ports(container.get("ports") or (), (*path, "ports"))
    for index, each in enumerate(container.get("env") or ()):
        yield from _variable(each, (*path, "env", index))
    yield from _mounts(container.get("volumeMounts") or (), (*path, "volumeMounts"), volumes)
    for word in _PROBES:
        if container.get(word) is not None:
            yield from _probe(container[word], (*path, word))
    yield from _resources(container.get("resources") or {}, (*path, "resources"))


def _ports(ports: Iterable[Data], path: Path) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, each in enumerate(ports):
        place, name = (*path, index), each.get("name")
        if name:
            yield from _port_name(name, (*place, "name"))
            if name in seen:
                yield finding.duplicate((*place, "name"), name, RULE)
            seen.add(name)
        number, on_host = each.get("containerPort") or 0, each.get("hostPort") or 0
        if not number:
            yield finding.required((*place, "containerPort"), RULE)
        elif not 1 <= number <= 65535:
            yield finding.invalid((*place, "containerPort"), number, _PORT, RULE)
        if on_host and not 1 <= on_host <= 65535:
            yield finding.invalid((*place, "hostPort"), on_host, _PORT, RULE)


def _port_name(name: str, path: Path) -> Iterator[Finding]:
    if len(name) > 15:
        yield finding.invalid(path, name, "must be no more than 15 characters", RULE)
    if not _PORT_NAME.match(name):
        yield finding.invalid(path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)", RULE)
    if not any("a" <= each <= "z" for each in name):
        yield finding.invalid(path, name, "must contain at least one letter (a-z)", RULE)


def _variable(each: Data, path: Path) -> Iterator[Finding]:
    name = str(each.get("name") or "")
    if name and not _ENV_NAME.match(name):
        why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield finding.invalid((*path, "name"), name, why, RULE)
    source = each.get("valueFrom")
    if source is None:
        return
    if not source:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield finding.invalid((*path, "valueFrom"), "", why, RULE)
    elif each.get("value"):
        yield finding.invalid((*path, "valueFrom"), "", "may not be specified when `value` is not empty", RULE)
    elif len(source) > 1:
        yield finding.invalid((*path, "valueFrom"), "", "may not have more than one field specified at a time", RULE)


def _mounts(mounts: Iterable[Data], path: Path, volumes: set[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, each in enumerate(mounts):
        name, place = each.get("name"), each.get("mountPath")
        if name and name not in volumes:
            where = (*path, index, "name")
            yield Finding(path=where, message=f"Not found: {finding.show(name)}", rule=RULE, cause=CauseType.NOT_FOUND)
        if place and place in seen:
            yield finding.invalid((*path, index, "mountPath"), place, "must be unique", RULE)
        seen.add(place or "")


def _probe(probe: Data, path: Path) -> Iterator[Finding]:
    handlers = [word for word in _HANDLERS if probe.get(word) is not None]
    if not handlers:
        yield finding.required(path, RULE, "must specify a handler type")
    for word in handlers[1:]:
        yield finding.forbidden((*path, word), "may not specify more than 1 handler type", RULE)
    for word in ("httpGet", "tcpSocket", "grpc"):
        port = (probe.get(word) or {}).get("port")
        if isinstance(port, int) and not 1 <= port <= 65535:
            yield finding.invalid((*path, word, "port"), port, _PORT, RULE)
    for word in _PROBE_NUMBERS:
        if (probe.get(word) or 0) < 0:
            yield finding.invalid((*path, word), probe[word], _NOT_NEGATIVE, RULE)


def _resources(resources: Data, path: Path) -> Iterator[Finding]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for word, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if quantity.parse(amount) < 0:
                yield finding.invalid((*path, f"{word}[{name}]"), amount, _NOT_NEGATIVE, RULE)
    for name, amount in requests.items():
        if name in limits and quantity.parse(amount) > quantity.parse(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield finding.invalid((*path, "requests"), amount, why, RULE)


def _spreading(constraints: Iterable[Data], path: Path) -> Iterator[Finding]:
    for index, each in enumerate(constraints):
        if (each.get("maxSkew") or 0) <= 0:
            yield finding.invalid((*path, index, "maxSkew"), each.get("maxSkew") or 0, "must be greater than zero", RULE)


def requests_of_limits(spec: Data) -> None:
    """Ask for what a container is limited to, where it asks for nothing; in place."""
    for each in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = each.get("resources") or {}
        limits: Data = resources.get("limits") or {}
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}


def quality(spec: Data) -> str:
    """The quality of service: Guaranteed, Burstable or BestEffort."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = [{**(each.get("resources") or {})} for each in containers]
    amounts: list[tuple[Any, Any]] = []
    for each in asked:
        requests, limits = each.get("requests") or {}, each.get("limits") or {}
        amounts.extend((requests.get(name, limits.get(name)), limits.get(name)) for name in ("cpu", "memory"))
    if all(request is None and limit is None for request, limit in amounts):
        return "BestEffort"
    sure = all(request is not None and limit is not None and quantity.parse(request) == quantity.parse(limit) for request, limit in amounts)
    return "Guaranteed" if sure else "Burstable"
