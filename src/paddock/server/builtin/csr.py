"""CertificateSigningRequests: asked for by anybody with the right, approved by those who may, signed by whoever is named."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages, failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin.tables import NONE, Cells, age_of, name_of
from paddock.server.resources.strategy import Strategy, WriteContext
from paddock.server.security.attributes import Attributes
from paddock.server.security.rbac import MASTERS, Rbac

if TYPE_CHECKING:
    from cryptography import x509

GROUP = "certificates.k8s.io"
PLACE = (GROUP, "CertificateSigningRequest")
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
_LEGACY = "kubernetes.io/legacy-unknown"
_SERVER = "system:apiserver"
_RULE = "core/certificate-request"
_SIGNER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/[a-z0-9]([-a-z0-9.:]*[a-z0-9])?\Z")
# The object identifier of a group in a subject.
_ORGANIZATION = "2.5.4.10"
_LEAST_SECONDS, _LONGEST_SIGNER = 600, 571
_CERTIFICATE = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


class RequestStrategy(Strategy):
    """Records the requester, which never changes. Approving and signing need rights of their own, by signer."""

    def __init__(self, judge: Rbac) -> None:
        self._judge = judge

    def states(self) -> tuple[str, ...]:
        """Approving is apart from signing."""
        return ("status", "approval")

    def wrong_name(self, name: str) -> str:
        """Any segment of a path."""
        return next((f"may not contain '{mark}'" for mark in "/%" if mark in name), "")

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Record the requester, with no decision."""
        spec = {key: value for key, value in (new.get("spec") or {}).items() if key not in ("username", "uid", "groups", "extra")}
        spec["username"] = context.user
        if context.uid:
            spec["uid"] = context.uid
        if context.groups:
            spec["groups"] = list(context.groups)
        if context.extra:
            spec["extra"] = {key: list(values) for key, values in context.extra.items()}
        new["spec"] = spec
        new["status"] = {}
        return new

    def taken(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Keep the request as it was. Each path changes its own part of the status."""
        new["spec"] = old["spec"]
        if context.subresource not in self.states():
            return new
        status, before = dict(new.get("status") or {}), old.get("status") or {}
        if context.subresource == "approval":
            status.pop("certificate", None)
            if "certificate" in before:
                status["certificate"] = before["certificate"]
        if "conditions" in status:
            status["conditions"] = [_timed(each, before, context.now) for each in status["conditions"] or ()]
        new["status"] = status
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A request that can be read, for a signer that can be named, and decisions that stay."""
        spec, status = new.get("spec") or {}, new.get("status") or {}
        if old is None:
            yield from _check_spec(spec)
            self._check_subject(new, spec)
        else:
            self._check_right(new, old, context)
            yield from _check_change(status, old.get("status") or {}, context.subresource)
        yield from _check_conditions(status.get("conditions") or ())
        wrong = _wrong_certificate(status.get("certificate"))
        if wrong:
            yield finding.invalid(("status", "certificate"), "<certificate data>", wrong, _RULE)

    def _check_subject(self, new: Data, spec: Data) -> None:
        """Nobody becomes a master by asking."""
        request = read_request(spec.get("request"))
        if spec.get("signerName") != CLIENT_SIGNER or request is None:
            return
        if any(each.value == MASTERS for each in request.subject if each.oid.dotted_string == _ORGANIZATION):
            why = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            raise failure.forbidden(failure.FailureTarget(new["metadata"].get("name", ""), GROUP, "certificatesigningrequests"), why)

    def _check_right(self, new: Data, old: Data, context: WriteContext) -> None:
        verb = {"approval": "approve", "status": "sign"}.get(context.subresource)
        if verb is None or context.user == _SERVER or (verb == "sign" and new.get("status") == old.get("status")):
            return
        signer = old["spec"]["signerName"]
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            if self._judge.allows(Attributes(context.user, context.groups, verb, GROUP, "signers", "", "", name)):
                return
        about = failure.FailureTarget(old["metadata"]["name"], GROUP, "certificatesigningrequests")
        raise failure.forbidden(about, f'user not permitted to {verb} requests with signerName "{signer}"')


def read_request(text: Any) -> "x509.CertificateSigningRequest | None":
    """The request of a spec, with a good signature; None when it is none."""
    from cryptography import x509  # noqa: PLC0415 - takes 11 MB, and hardly any server sees a request

    try:
        found = x509.load_pem_x509_csr(base64.b64decode(text or "", validate=True))
    except (ValueError, binascii.Error, TypeError):
        return None
    return found if found.is_signature_valid else None


def has(data: Data, kind: str) -> bool:
    """Return whether a request has a condition."""
    return any(each.get("type") == kind for each in (data.get("status") or {}).get("conditions") or ())


def _timed(condition: Data, before: Data, now: str) -> Data:
    known = (each for each in before.get("conditions") or () if (each["type"], each["status"]) == (condition["type"], condition["status"]))
    since = next((each["lastTransitionTime"] for each in known if each.get("lastTransitionTime")), now)
    return {
        **condition,
        "lastUpdateTime": condition.get("lastUpdateTime") or now,
        "lastTransitionTime": condition.get("lastTransitionTime") or since,
    }


def _check_spec(spec: Data) -> Iterator[Finding]:
    if read_request(spec.get("request")) is None:
        why = "PEM block type must be CERTIFICATE REQUEST, and its signature good"
        yield finding.invalid(("spec", "request"), spec.get("request"), why, _RULE)
    usages = spec.get("usages") or []
    if not usages:
        yield finding.required(("spec", "usages"), _RULE)
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            yield finding.unsupported(("spec", "usages", index), usage, USAGES, _RULE)
        elif usage in usages[:index]:
            yield finding.duplicate(("spec", "usages", index), usage, _RULE)
    signer = spec.get("signerName", "")
    if signer == _LEGACY:
        yield finding.invalid(("spec", "signerName"), signer, "the legacy signerName is not allowed via this API version", _RULE)
    elif signer and (len(signer) > _LONGEST_SIGNER or not _SIGNER.match(signer)):
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield finding.invalid(("spec", "signerName"), signer, why, _RULE)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _LEAST_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        yield finding.invalid(("spec", "expirationSeconds"), seconds, why, _RULE)


def _check_conditions(conditions: Any) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, each in enumerate(conditions):
        path = ("status", "conditions", index)
        kind, status = each.get("type", ""), each.get("status", "")
        allowed = ("True",) if kind in (APPROVED, DENIED, FAILED) else ("False", "True", "Unknown")
        if not kind:
            yield finding.required((*path, "type"), _RULE)
        if status not in allowed:
            yield finding.unsupported((*path, "status"), status, allowed, _RULE)
        if kind in seen:
            yield finding.duplicate((*path, "type"), kind, _RULE)
        seen.add(kind)
    if {APPROVED, DENIED} <= seen:
        yield finding.invalid(("status", "conditions"), APPROVED, "Approved and Denied conditions are mutually exclusive", _RULE)


def _check_change(status: Data, before: Data, subresource: str) -> Iterator[Finding]:
    path = ("status", "conditions")
    for kind in (APPROVED, DENIED, FAILED):
        now, then = ([each for each in part.get("conditions") or () if each.get("type") == kind] for part in (status, before))
        if len(now) < len(then):
            yield finding.forbidden(path, f'updates may not remove a condition of type "{kind}"', _RULE)
        elif subresource != "approval" and kind != FAILED and len(now) > len(then):
            yield finding.forbidden(path, f'updates may not add a condition of type "{kind}"', _RULE)
        elif subresource != "approval" and kind != FAILED and now != then:
            yield finding.forbidden(path, f'updates may not modify a condition of type "{kind}"', _RULE)
    if before.get("certificate") and status.get("certificate") != before["certificate"]:
        yield finding.forbidden(("status", "certificate"), "updates may not modify existing certificate content", _RULE)


def _wrong_certificate(text: Any) -> str:
    if not text:
        return ""
    from cryptography import x509  # noqa: PLC0415 - as `read_request` says

    try:
        pem = base64.b64decode(text, validate=True)
        kinds = set(_CERTIFICATE.findall(pem))
        if kinds - {b"CERTIFICATE"}:
            return "only CERTIFICATE PEM blocks are allowed"
        return "" if x509.load_pem_x509_certificates(pem) else "must contain at least one CERTIFICATE PEM block"
    except (ValueError, binascii.Error, TypeError):
        return "must contain at least one CERTIFICATE PEM block"


def _row(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    seconds = spec.get("expirationSeconds")
    decided = [kind for kind in (DENIED, APPROVED) if has(data, kind)] or ["Pending"]
    words = [decided[0], *([FAILED] if has(data, FAILED) else []), *(["Issued"] if status.get("certificate") else [])]
    duration = NONE if seconds is None else ages.since(0.0, float(seconds))
    return [name_of(data), age_of(data, now), spec.get("signerName", ""), spec.get("username", ""), duration, ",".join(words)]


CELLS: dict[tuple[str, str], Cells] = {PLACE: _row}
