"""Rows of the kinds that bound and judge what others write, and of those that are only kept (docs/spec/kube-api.md section 2.2)."""

from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.wire import from_data
from paddock.server.builtin.ingresses import IS_DEFAULT
from paddock.server.builtin.tables import NONE, Cells, age_of, name_of

_UNSET = "<unset>"
_REGISTRATION, _STORAGE, _FLOWS = "admissionregistration.k8s.io", "storage.k8s.io", "flowcontrol.apiserver.k8s.io"


def _quota(data: Data, now: float) -> list[Any]:
    status = data.get("status") or {}
    used: Data = status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for name, most in sorted((status.get("hard") or {}).items()):
        (limits if name.startswith("limits.") else requests).append(f"{name}: {used.get(name, 0)}/{most}")
    return [name_of(data), ", ".join(requests), ", ".join(limits), age_of(data, now)]


def _api_service(data: Data, now: float) -> list[Any]:
    conditions = (data.get("status") or {}).get("conditions") or ()
    available = next((each.get("status") for each in conditions if each.get("type") == "Available"), "")
    return [name_of(data), "Local", available, age_of(data, now)]


def _budget(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    bounds = [str(spec[each]) if spec.get(each) is not None else "N/A" for each in ("minAvailable", "maxUnavailable")]
    return [name_of(data), *bounds, status.get("disruptionsAllowed", 0), age_of(data, now)]


def _priority(data: Data, now: float) -> list[Any]:
    policy = data.get("preemptionPolicy") or ""
    return [name_of(data), data.get("value", 0), data.get("globalDefault") or False, age_of(data, now), policy]


def _ingress(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    default = (data["metadata"].get("annotations") or {}).get(IS_DEFAULT) == "true"
    found = spec.get("parameters")
    shown = NONE
    if found:
        group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
        shown = f"{found.get('kind', '')}{group}/{found.get('name', '')}"
    return [name_of(data) + (" (default)" if default else ""), spec.get("controller") or "", shown, age_of(data, now)]


def _driver(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    tokens = spec.get("tokenRequests")
    return [
        name_of(data),
        spec.get("attachRequired", True),
        *(spec.get(each) or False for each in ("podInfoOnMount", "storageCapacity")),
        _UNSET if tokens is None else ",".join(each.get("audience", "") for each in tokens),
        spec.get("requiresRepublish") or False,
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age_of(data, now),
    ]


def _attachment(data: Data, now: float) -> list[Any]:
    spec, status = data.get("spec") or {}, data.get("status") or {}
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    return [name_of(data), spec.get("attacher", ""), volume, spec.get("nodeName", ""), status.get("attached", False), age_of(data, now)]


def _node_drivers(data: Data, now: float) -> list[Any]:
    return [name_of(data), len((data.get("spec") or {}).get("drivers") or ()), age_of(data, now)]


def _plain(*path: str) -> Cells:
    def row(data: Data, now: float) -> list[Any]:
        return [name_of(data), data.get(path[0]) or "", age_of(data, now)]

    return row


def _webhooks(data: Data, now: float) -> list[Any]:
    return [name_of(data), len(data.get("webhooks") or ()), age_of(data, now)]


def _policy(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    kind = spec.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
    rules = spec.get("validations") or spec.get("mutations") or ()
    return [name_of(data), len(rules), shown, age_of(data, now)]


def _policy_binding(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    reference, shown = spec.get("paramRef") or {}, _UNSET
    if reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference.get("selector") is not None:
        shown = selectors.text(from_data(reference["selector"], selectors.LabelSelector))
    return [name_of(data), spec.get("policyName", ""), shown, age_of(data, now)]


def _flow_schema(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    dangling = [each.get("status", "?") for each in (data.get("status") or {}).get("conditions") or () if each.get("type") == "Dangling"]
    return [
        name_of(data),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        age_of(data, now),
        dangling[0] if dangling else "?",
    ]


def _priority_level(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing") or {}
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares", 0)
    counts = [queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(data), spec.get("type", ""), shares, *counts, age_of(data, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("", "ResourceQuota"): _quota,
    (_REGISTRATION, "MutatingWebhookConfiguration"): _webhooks,
    (_REGISTRATION, "ValidatingWebhookConfiguration"): _webhooks,
    (_REGISTRATION, "ValidatingAdmissionPolicy"): _policy,
    (_REGISTRATION, "MutatingAdmissionPolicy"): _policy,
    (_REGISTRATION, "MutatingAdmissionPolicyBinding"): _policy_binding,
    (_REGISTRATION, "ValidatingAdmissionPolicyBinding"): _policy_binding,
    (_FLOWS, "FlowSchema"): _flow_schema,
    (_FLOWS, "PriorityLevelConfiguration"): _priority_level,
    ("policy", "PodDisruptionBudget"): _budget,
    ("scheduling.k8s.io", "PriorityClass"): _priority,
    ("node.k8s.io", "RuntimeClass"): _plain("handler"),
    ("networking.k8s.io", "IngressClass"): _ingress,
    (_STORAGE, "CSIDriver"): _driver,
    (_STORAGE, "CSINode"): _node_drivers,
    (_STORAGE, "VolumeAttachment"): _attachment,
    (_STORAGE, "VolumeAttributesClass"): _plain("driverName"),
}
