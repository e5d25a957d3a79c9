"""Kinds that controllers make pods of: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and ReplicationControllers.

They are stored as kube-apiserver stores them. Their status is what whoever runs pods writes into it.
"""

import re
from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.builtin import podspecs
from paddock.server.kindtable import pipeline
from paddock.server.resources.strategy import Strategy, WriteContext

RULE = "core/workload"
_NOT_NEGATIVE = "must be greater than or equal to 0"
_IMMUTABLE = "field is immutable"
_TEMPLATE = ("spec", "template")
_GENERATION = "deprecated.daemonset.template.generation"
# Python reads no more than 4300 digits, but digits of every script.
_NUMBER = re.compile(r"[0-9]{1,18}")
_STATEFUL_CHANGES = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy")
_STATEFUL_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_JOB_DEFAULTS: Data = {"backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False, "podReplacementPolicy": "TerminatingOrFailed"}
_UID, _NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_OLDER = {_UID: "controller-uid", _NAME: "job-name"}


def _negative(spec: Data, path: Path, *names: str) -> Iterator[Finding]:
    for name in names:
        if (spec.get(name) or 0) < 0:
            yield finding.invalid((*path, name), spec[name], _NOT_NEGATIVE, RULE)


def _labels(template: Data) -> Data:
    found: Data = (template.get("metadata") or {}).get("labels") or {}
    return found


def _changed(new: Data, old: Data | None, *path: str) -> Iterator[Finding]:
    if old is None:
        return
    here, before = new, old
    for part in path[:-1]:
        here, before = here.get(part) or {}, before.get(part) or {}
    if here.get(path[-1]) != before.get(path[-1]):
        yield finding.invalid(path, here.get(path[-1]), _IMMUTABLE, RULE)


class ControllerStrategy(Strategy):
    """A template, and a selector that finds what is made of it."""

    message = ""
    # what the selector of the kind is called where it selects everything
    noun = ""
    numbers: tuple[str, ...] = ("replicas", "minReadySeconds")
    restarts: tuple[str, ...] = ("Always",)

    def counts_generation(self) -> bool:
        return True

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing has been observed."""
        new["status"] = pipeline.blank(self.message, "status")
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """It selects what it makes, and its template is that of a pod."""
        spec = new.get("spec") or {}
        if old is not None and spec == old.get("spec"):
            return
        yield from _negative(spec, ("spec",), *self.numbers)
        yield from self.selecting(spec)
        yield from check_template(spec.get("template") or {}, _TEMPLATE, self.restarts)
        yield from self.rules(spec)
        yield from self.changes(new, old)

    def selecting(self, spec: Data) -> Iterator[Finding]:
        """The selector finds the template."""
        selector, labels = spec.get("selector"), _labels(spec.get("template") or {})
        read = selectors.read(selector) if selector else None
        if selector is not None and read is None:
            yield finding.invalid(("spec", "selector"), {}, f"empty selector is invalid for {self.noun}", RULE)
        elif read is None or not selectors.matches(read, labels):
            path = (*_TEMPLATE, "metadata", "labels")
            yield finding.invalid(path, labels or None, "`selector` does not match template `labels`", RULE)
        if read is not None:
            yield from selectors.selector_findings(read, ("spec", "selector"), RULE)

    def rules(self, spec: Data) -> Iterator[Finding]:
        """Rules of the kind alone."""
        yield from ()

    def changes(self, new: Data, old: Data | None) -> Iterator[Finding]:
        """Yield a finding for each change of an immutable field."""
        yield from _changed(new, old, "spec", "selector")


def check_template(template: Data, path: Path, restarts: tuple[str, ...]) -> Iterator[Finding]:
    """The template of a kind whose pods restart in these ways."""
    spec, place = template.get("spec") or {}, (*path, "spec")
    yield from podspecs.check(spec, place)
    policy = spec.get("restartPolicy")
    if restarts == ("Always",):
        if policy and policy not in restarts:
            yield finding.unsupported((*place, "restartPolicy"), policy, restarts, RULE)
        if spec.get("activeDeadlineSeconds") is not None:
            yield finding.forbidden((*place, "activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported", RULE)
    elif restarts and policy in ("Always", "", None):
        yield finding.required((*place, "restartPolicy"), RULE, 'valid values: "OnFailure", "Never"')
    elif restarts and policy not in restarts:
        yield finding.unsupported((*place, "restartPolicy"), policy, restarts, RULE)


class DeploymentStrategy(ControllerStrategy):
    """Pods that are replaced step by step."""

    message, noun = "apps/v1.Deployment", "deployment"
    numbers = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")

    def rules(self, spec: Data) -> Iterator[Finding]:
        """The way of replacing, and its bounds."""
        strategy, path = spec.get("strategy") or {}, ("spec", "strategy")
        rolling = strategy.get("rollingUpdate")
        if strategy.get("type") == "Recreate" and rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield finding.forbidden((*path, "rollingUpdate"), why, RULE)
        elif rolling is not None and all(rolling.get(word) in (0, "0%") for word in ("maxUnavailable", "maxSurge")):
            why = "may not be 0 when `maxSurge` is 0"
            yield finding.invalid((*path, "rollingUpdate", "maxUnavailable"), rolling["maxUnavailable"], why, RULE)
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
            yield finding.invalid(("spec", "progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds", RULE)


class ReplicaSetStrategy(ControllerStrategy):
    """A number of equal pods."""

    message, noun = "apps/v1.ReplicaSet", "replicaset"


class StatefulSetStrategy(ControllerStrategy):
    """Pods with a name and storage of their own."""

    message, noun = "apps/v1.StatefulSet", "statefulset"

    def rules(self, spec: Data) -> Iterator[Finding]:
        """The order in which pods are made."""
        policy = spec.get("podManagementPolicy")
        if policy not in ("OrderedReady", "Parallel"):
            path, why = ("spec", "podManagementPolicy"), "must be 'OrderedReady' or 'Parallel'"
            yield finding.invalid(path, policy, why, RULE) if policy else finding.required(path, RULE)

    def changes(self, new: Data, old: Data | None) -> Iterator[Finding]:
        """A few members change, the rest stays."""
        changeable = (*_STATEFUL_CHANGES, "minReadySeconds")
        kept = [{key: value for key, value in (each.get("spec") or {}).items() if key not in changeable} for each in (new, old or new)]
        if kept[0] != kept[1]:
            yield finding.forbidden(("spec",), _STATEFUL_FIXED, RULE)


class DaemonSetStrategy(ControllerStrategy):
    """A pod on every node."""

    message, noun = "apps/v1.DaemonSet", "daemonset"
    numbers = ("minReadySeconds", "revisionHistoryLimit")

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The generation of the template is counted in an annotation."""
        new["metadata"].setdefault("annotations", {})[_GENERATION] = "1"
        return super().prepare_create(new, context)

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Another template is another generation of it."""
        count = str((old["metadata"].get("annotations") or {}).get(_GENERATION) or "1")
        if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template") and _NUMBER.fullmatch(count):
            count = str(int(count) + 1)
        new["metadata"].setdefault("annotations", {})[_GENERATION] = count
        return new


class ReplicationControllerStrategy(ControllerStrategy):
    """The elder of the ReplicaSet: its selector is a map of labels."""

    message = "core/v1.ReplicationController"

    def complete(self, new: Data) -> None:
        """The labels of the template select, and are those of the object, where it says neither."""
        spec = new.get("spec") or {}
        labels = _labels(spec.get("template") or {})
        if labels and not spec.get("selector"):
            spec["selector"] = dict(labels)
        if labels and not new["metadata"].get("labels"):
            new["metadata"]["labels"] = dict(labels)

    def selecting(self, spec: Data) -> Iterator[Finding]:
        """The selector finds the template."""
        selector = spec.get("selector") or {}
        if not selector:
            yield finding.required(("spec", "selector"), RULE)
        if spec.get("template") is None:
            yield finding.required(_TEMPLATE, RULE)
            return
        labels = _labels(spec["template"])
        if any(labels.get(key) != value for key, value in selector.items()):
            path = (*_TEMPLATE, "metadata", "labels")
            yield finding.invalid(path, labels, "`selector` does not match template `labels`", RULE)

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Without a template there is nothing more to say."""
        if (new.get("spec") or {}).get("template") is None:
            yield from self.selecting(new.get("spec") or {})
        else:
            yield from super().validate(new, old, context)

    def changes(self, new: Data, old: Data | None) -> Iterator[Finding]:
        """The selector may change."""
        yield from ()


class PodTemplateStrategy(Strategy):
    """A template by itself."""

    def counts_generation(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The template is that of a pod."""
        yield from check_template(new.get("template") or {}, ("template",), ())


class JobStrategy(ControllerStrategy):
    """Pods that end; the selector is made, not given."""

    message = "batch/v1.Job"
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    restarts = ("OnFailure", "Never")

    def complete(self, new: Data) -> None:
        """Defaults that the job of a CronJob does not have."""
        spec = new.get("spec")
        if not isinstance(spec, dict):
            return
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = spec["parallelism"] = 1
        spec.setdefault("parallelism", 1)
        if spec.get("podFailurePolicy") is not None:
            spec.setdefault("podReplacementPolicy", "Failed")
        for name, value in _JOB_DEFAULTS.items():
            spec.setdefault(name, value)
        labels = _labels(spec.get("template") or {})
        if labels and not new["metadata"].get("labels"):
            new["metadata"]["labels"] = dict(labels)

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Labels by which the job finds its pods."""
        spec, meta = new.get("spec") or {}, new["metadata"]
        if not spec.get("manualSelector"):
            template = spec.get("template") or {}
            labels = template.setdefault("metadata", {}).setdefault("labels", {})
            for name, value in ((_UID, meta.get("uid", "")), (_NAME, meta.get("name", ""))):
                labels[name] = labels[_OLDER[name]] = value
            spec["selector"] = {"matchLabels": {_UID: meta.get("uid", "")}}
            spec["manualSelector"] = False
            meta["labels"] = {**(meta.get("labels") or {}), **labels}
        return super().prepare_create(new, context)

    def selecting(self, spec: Data) -> Iterator[Finding]:
        """Only a selector that was given can miss the template."""
        if spec.get("selector") is None:
            yield finding.required(("spec", "selector"), RULE)
        else:
            yield from super().selecting(spec)

    def rules(self, spec: Data) -> Iterator[Finding]:
        """The number of an indexed job has to be known."""
        yield from _completion(spec, ("spec",))
        policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
        if spec.get("podFailurePolicy") is not None and policy == "OnFailure":
            why = 'only "Never" is supported when podFailurePolicy is specified'
            yield finding.invalid((*_TEMPLATE, "spec", "restartPolicy"), policy, why, RULE)

    def changes(self, new: Data, old: Data | None) -> Iterator[Finding]:
        """A job that has begun does what it was made for; a suspended one may still get another template for scheduling."""
        for name in ("completions", "selector", "completionMode"):
            yield from _changed(new, old, "spec", name)
        if not ((old or {}).get("spec") or {}).get("suspend"):
            yield from _changed(new, old, *_TEMPLATE)


def _completion(spec: Data, path: Path) -> Iterator[Finding]:
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        yield finding.unsupported((*path, "completionMode"), mode, ("NonIndexed", "Indexed"), RULE)
    if mode == "Indexed" and spec.get("completions") is None:
        yield finding.required((*path, "completions"), RULE, "when completion mode is Indexed")


class CronJobStrategy(ControllerStrategy):
    message = "batch/v1.CronJob"

    def wrong_name(self, name: str) -> str:
        """Its jobs get the minute behind the name."""
        return super().wrong_name(name) or ("must be no more than 52 characters" if len(name) > 52 else "")

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A schedule, and a job."""
        spec = new.get("spec") or {}
        if old is not None and spec == old.get("spec"):
            return
        schedule = spec.get("schedule") or ""
        if schedule and (wrong := schedule_problem(schedule)):
            yield finding.invalid(("spec", "schedule"), schedule, wrong, RULE)
        yield from _zone(spec.get("timeZone"))
        names = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
        yield from _negative(spec, ("spec",), *names)
        job, path = (spec.get("jobTemplate") or {}).get("spec") or {}, ("spec", "jobTemplate", "spec")
        yield from _negative(job, path, *JobStrategy.numbers)
        yield from _completion(job, path)
        yield from check_template(job.get("template") or {}, (*path, "template"), JobStrategy.restarts)


def _zone(name: str | None) -> Iterator[Finding]:
    path = ("spec", "timeZone")
    if name is None:
        return
    if not name:
        yield finding.invalid(path, name, "timeZone must be nil or non-empty string", RULE)
    elif name.lower() == "local":
        yield finding.invalid(path, name, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones", RULE)
    else:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - only CronJobs name a time zone

        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield finding.invalid(path, name, f"unknown time zone {name}", RULE)


_FIELDS: tuple[tuple[str, int, int], ...] = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_EVERY = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(text: str) -> str:
    """The reason why a text is no schedule of a CronJob; empty when it is one."""
    if text.startswith("@"):
        return "" if text in _EVERY or text.startswith("@every ") else f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (name, least, most) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if wrong := _range_problem(part, name, least, most):
                return wrong
    return ""


def _range_problem(part: str, name: str, least: int, most: int) -> str:
    span, slash, step = part.partition("/")
    if slash and not _NUMBER.fullmatch(step):
        return f"failed to parse int from {step}: invalid step"
    if slash and int(step) == 0:
        return f"step of range should be a positive number: {part}"
    if span in ("*", "?"):
        return ""
    ends = [_number(each, name) for each in span.split("-")]
    if len(ends) > 2:
        return f"too many hyphens: {part}"
    if any(each is None for each in ends):
        return f'failed to parse int from {span}: strconv.Atoi: parsing "{span}": invalid syntax'
    begin, end = ends[0] or 0, ends[-1] or 0
    if begin < least:
        return f"beginning of range ({begin}) below minimum ({least}): {part}"
    if end > most:
        return f"end of range ({end}) above maximum ({most}): {part}"
    return f"beginning of range ({begin}) beyond end of range ({end}): {part}" if begin > end else ""


def _number(text: str, name: str) -> int | None:
    words = {"month": dict(zip(_MONTHS, range(1, 13), strict=True)), "weekday": dict(zip(_DAYS, range(7), strict=True))}.get(name, {})
    if text.lower() in words:
        return words[text.lower()]
    return int(text) if _NUMBER.fullmatch(text) else None


STRATEGIES: dict[tuple[str, str], Any] = {
    ("apps", "Deployment"): DeploymentStrategy(),
    ("apps", "ReplicaSet"): ReplicaSetStrategy(),
    ("apps", "StatefulSet"): StatefulSetStrategy(),
    ("apps", "DaemonSet"): DaemonSetStrategy(),
    ("batch", "Job"): JobStrategy(),
    ("batch", "CronJob"): CronJobStrategy(),
    ("", "ReplicationController"): ReplicationControllerStrategy(),
    ("", "PodTemplate"): PodTemplateStrategy(),
}
