"""Rows of pods and of the kinds that pods are made of, as kubectl shows them (docs/spec/kube-api.md section 2.2)."""

from collections.abc import Iterable
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages, selectors
from paddock.server.builtin.tables import NONE, Cells, age_of, name_of

_UNKNOWN = "<unknown>"


def _parts(data: Data) -> tuple[Data, Data]:
    return data.get("spec") or {}, data.get("status") or {}


def images(template: Data | None) -> list[str]:
    """The names and the images of the containers of a template."""
    found = ((template or {}).get("spec") or {}).get("containers") or []
    return [",".join(str(each.get(part, "")) for each in found) for part in ("name", "image")]


def labels(found: Data | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def _selector(found: Data | None) -> str:
    return (selectors.text(selectors.read(found)) if found else "") or NONE


def _pod(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    found: list[Data] = status.get("containerStatuses") or []
    ready = sum(1 for each in found if each.get("ready") and (each.get("state") or {}).get("running") is not None)
    gates: list[Data] = spec.get("readinessGates") or []
    true = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    shown = f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}" if gates else NONE
    return [
        name_of(data),
        f"{ready}/{len(spec.get('containers') or ())}",
        _phase(data),
        str(sum(each.get("restartCount", 0) for each in found)),
        age_of(data, now),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        shown,
    ]


def _phase(data: Data) -> str:
    spec, status = _parts(data)
    reason = status.get("reason") or status.get("phase") or ""
    gated = any(each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in status.get("conditions") or ())
    if gated and spec.get("schedulingGates"):
        reason = "SchedulingGated"
    for each in status.get("containerStatuses") or ():
        state = each.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason") or ended.get("reason"):
            reason = waiting.get("reason") or ended["reason"]
        elif ended:
            signal = ended.get("signal")
            reason = f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"
    if data["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _deployment(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    counts = [f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}", status.get("updatedReplicas", 0)]
    counts.append(status.get("availableReplicas", 0))
    return [name_of(data), *counts, age_of(data, now), *images(spec.get("template")), _selector(spec.get("selector"))]


def _replica_set(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    found = spec.get("selector") or {}
    shown = _selector(found) if "matchLabels" in found or "matchExpressions" in found else labels(found)
    return [name_of(data), *counts, age_of(data, now), *images(spec.get("template")), shown]


def _stateful_set(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(data), ready, age_of(data, now), *images(spec.get("template"))]


def _daemon_set(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    nodes = labels(((spec.get("template") or {}).get("spec") or {}).get("nodeSelector"))
    begin = [name_of(data), *(status.get(each, 0) for each in names), nodes, age_of(data, now)]
    return [*begin, *images(spec.get("template")), _selector(spec.get("selector"))]


def _job(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    done, wanted, most = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {most}" if most > 1 else f"{done}/1"
    duration = ""
    if status.get("startTime"):
        end = ages.seconds_of(status["completionTime"]) if status.get("completionTime") else None
        duration = ages.age(status["startTime"], now if end is None else end)
    row = [name_of(data), _job_state(data), completions, duration, age_of(data, now)]
    return [*row, *images(spec.get("template")), _selector(spec.get("selector"))]


def _job_state(data: Data) -> str:
    status = data.get("status") or {}
    true = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    for name, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if name in true:
            return shown
    if data["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if "Suspended" in true:
        return "Suspended"
    for name in ("FailureTarget", "SuccessCriteriaMet"):
        if name in true:
            return name
    return "Running"


def _cron_job(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    last = ages.age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    suspended = "True" if spec.get("suspend") else "False"
    row = [name_of(data), spec.get("schedule", ""), spec.get("timeZone") or NONE, suspended, len(status.get("active") or ()), last]
    return [*row, age_of(data, now), *images(job.get("template")), _selector(job.get("selector"))]


def _template(data: Data, now: float) -> list[Any]:
    template = data.get("template") or {}
    return [name_of(data), *images(template), labels((template.get("metadata") or {}).get("labels"))]


def _autoscaler(data: Data, now: float) -> list[Any]:
    spec, status = _parts(data)
    target, least = spec.get("scaleTargetRef") or {}, spec.get("minReplicas")
    row = [name_of(data), f"{target.get('kind', '')}/{target.get('name', '')}", _targets(data)]
    row += ["<unset>" if least is None else str(least), spec.get("maxReplicas", 0), status.get("currentReplicas", 0)]
    return [*row, age_of(data, now)]


def _targets(data: Data) -> str:
    spec, status = _parts(data)
    share = spec.get("targetCPUUtilizationPercentage")
    if share is not None:
        used = status.get("currentCPUUtilizationPercentage")
        return f"cpu: {_UNKNOWN if used is None else f'{used}%'}/{share}%"
    current: list[Data] = status.get("currentMetrics") or []
    return ", ".join(_metrics(spec.get("metrics") or (), current)) or "<none>"


def _metrics(targets: Iterable[Data], current: list[Data]) -> Iterable[str]:
    for index, each in enumerate(targets):
        kind = str(each.get("type", ""))
        word = kind[:1].lower() + kind[1:]
        source = each.get(word) or {}
        used = ((current[index].get(word) or {}).get("current") or {}) if index < len(current) else {}
        target = source.get("target") or {}
        prefix = f"{source.get('name', '')}: " if kind in ("Resource", "ContainerResource") else ""
        if target.get("averageUtilization") is not None:
            share = used.get("averageUtilization")
            yield f"{prefix}{_UNKNOWN if share is None else f'{share}%'}/{target['averageUtilization']}%"
        else:
            average = " (avg)" if target.get("averageValue") is not None else ""
            name = "averageValue" if average else "value"
            yield f"{prefix}{used.get(name, _UNKNOWN)}/{target.get(name, _UNKNOWN)}{average}"


CELLS: dict[tuple[str, str], Cells] = {
    ("", "Pod"): _pod,
    ("", "PodTemplate"): _template,
    ("", "ReplicationController"): _replica_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
}
