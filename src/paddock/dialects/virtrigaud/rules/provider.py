"""The rules of VirtRigaud's Provider."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from paddock.dialects.virtrigaud.rules import machine
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.provider import Provider

ADOPT_VMS = "virtrigaud.io/adopt-vms"
ADOPT_FILTER = "virtrigaud.io/adopt-filter"
CREDENTIALS = "virtrigaud/credentials-namespace"
ADOPTION = "virtrigaud/adopt-filter"
INSECURE = "virtrigaud/insecure"
ENDPOINT = "virtrigaud/endpoint-type"
POOLING = "virtrigaud/idle-connections"
# The beginnings of the addresses that each kind of hypervisor listens at.
_SCHEMES = {"vsphere": ("https://", "http://"), "proxmox": ("https://", "http://"), "libvirt": ("qemu",)}
_TEXTS = ("namePattern", "powerState")
_NUMBERS = ("minCPU", "maxCPU", "minMemoryMiB", "maxMemoryMiB")


@rule(CREDENTIALS)
def credentials_are_here(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """The credentials are in the Provider's own namespace, where its program can read them."""
    asked, own = provider.spec.credentialSecretRef.namespace, provider.metadata.namespace
    path = ("spec", "credentialSecretRef", "namespace")
    if asked and own and asked != own:
        why = f'the Secret has to be in the Provider\'s own namespace "{own}"; copy it there'
        yield finding.forbidden(path, why, CREDENTIALS)
    elif asked and not own:
        yield finding.warning(path, "the Secret has to be in the Provider's own namespace; leave this out", CREDENTIALS)


@rule(machine.DATASTORE, Cel("spec.defaults", *machine.DATASTORE_CEL))
def defaults_name_one(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """The defaults name a datastore or a storage pod, not both."""
    yield from machine.datastore_or_pod(provider.spec.defaults, ("spec", "defaults"), settings)


@rule(INSECURE)
def insecure_is_said(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """Settings that switch security off are for development only (a warning)."""
    spec = provider.spec
    if spec.insecureSkipVerify:
        text = "the hypervisor's certificate is not verified: for development only"
        yield finding.warning(("spec", "insecureSkipVerify"), text, INSECURE)
    tls = spec.runtime.service.tls if spec.runtime.service is not None else None
    path = ("spec", "runtime", "service", "tls")
    if tls is not None and not tls.enabled:
        text = "the connection to the provider is not encrypted: for development only"
        yield finding.warning((*path, "enabled"), text, INSECURE)
    elif tls is not None and tls.insecureSkipVerify:
        text = "the provider's certificate is not verified: for development only"
        yield finding.warning((*path, "insecureSkipVerify"), text, INSECURE)


@rule(ENDPOINT)
def endpoint_fits_type(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """The endpoint is one that this kind of hypervisor listens at (a warning)."""
    kind, endpoint = provider.spec.type, provider.spec.endpoint
    schemes = _SCHEMES.get(kind)
    if schemes and endpoint and not endpoint.startswith(schemes):
        text = f"{endpoint} is no address of a {kind} hypervisor: it begins with {' or '.join(schemes)}"
        yield finding.warning(("spec", "endpoint"), text, ENDPOINT)


@rule(POOLING)
def idle_connections_fit(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """No more connections wait than there may be (a warning)."""
    pooling = provider.spec.connectionPooling
    if pooling is not None and 0 < pooling.maxConnections < pooling.maxIdleConnections:
        path = ("spec", "connectionPooling", "maxIdleConnections")
        yield finding.warning(path, f"is more than maxConnections ({pooling.maxConnections})", POOLING)


@rule(machine.TIMEOUT)
def timeouts_are_not_negative(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """Intervals and timeouts are not negative."""
    spec = provider.spec
    if spec.healthCheck is not None:
        for name in ("interval", "timeout"):
            yield from machine.not_negative(getattr(spec.healthCheck, name), ("spec", "healthCheck", name))
    if spec.connectionPooling is not None:
        for name in ("connectionTimeout", "idleTimeout"):
            yield from machine.not_negative(getattr(spec.connectionPooling, name), ("spec", "connectionPooling", name))


@rule(ADOPTION)
def adoption_can_be_read(provider: "Provider", settings: AdmissionSettings) -> Iterator[Finding]:
    """The annotations of adoption can be read: "true", and a filter that is a JSON object with known members."""
    annotations = provider.metadata.annotations or {}
    wanted = annotations.get(ADOPT_VMS)
    if wanted is not None and wanted not in ("true", "false"):
        text = f'nothing is adopted: the value has to be "true", not {finding.show(wanted)}'
        yield finding.warning(("metadata", "annotations", ADOPT_VMS), text, ADOPTION)
    given = annotations.get(ADOPT_FILTER)
    if given is not None:
        yield from _adopt_filter(given, ("metadata", "annotations", ADOPT_FILTER))


def _adopt_filter(text: str, path: Path) -> Iterator[Finding]:
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        yield finding.invalid(path, text, "must be a JSON object", ADOPTION)
        return
    if not isinstance(given, Mapping):
        yield finding.invalid(path, text, "must be a JSON object", ADOPTION)
        return
    for name, value in given.items():
        why = _member_problem(name, value)
        if why:
            yield finding.invalid(path, text, why, ADOPTION)
    for least, most in (("minCPU", "maxCPU"), ("minMemoryMiB", "maxMemoryMiB")):
        low, high = given.get(least), given.get(most)
        if isinstance(low, int) and isinstance(high, int) and low > high:
            yield finding.invalid(path, text, f"{least} is more than {most}: no machine fits", ADOPTION)


def _member_problem(name: str, value: Any) -> str:
    if name in _NUMBERS:
        return "" if _is_number(value) and value >= 0 else f"{name} must be a whole number that is not negative"
    if name not in _TEXTS:
        return f"unknown member {name}; known are {', '.join((*_TEXTS, *_NUMBERS))}"
    if not isinstance(value, str):
        return f"{name} must be a string"
    if name == "namePattern":
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            return f"namePattern is no regular expression: {error}"
    return ""


def _is_number(value: Any) -> bool:
    return type(value) is int


RULES = (
    credentials_are_here,
    defaults_name_one,
    insecure_is_said,
    endpoint_fits_type,
    idle_connections_fit,
    timeouts_are_not_negative,
    adoption_can_be_read,
)
