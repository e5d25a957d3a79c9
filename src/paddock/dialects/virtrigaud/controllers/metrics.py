"""The metrics of VirtRigaud's manager, under the names of the documents (docs/spec/virtrigaud.md section 5.2).

Calls are counted where they are made, once each. Waiting and failing is counted when a condition changes, so that looking at an object
again counts nothing.
"""

import platform
from collections.abc import Iterator, Mapping

import msgspec

import paddock
from paddock.contract.breaker import BreakerState
from paddock.dialects.virtrigaud.controllers.reader import VirtrigaudCaches
from paddock.dialects.virtrigaud.plan import reasons
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.machinery import Machinery

_COMPONENT = "manager"
_OUTCOMES = {"done": "success", "again": "requeue"}
_OPERATIONS = frozenset({"Create", "Delete", "Power", "Describe", "Reconfigure"})
_ERRORS = {"ImagePrepare": "image-prepare"}
# 1 ms, 2 ms ... 16 s
_RECONCILE_SECONDS = tuple(0.001 * 2**power for power in range(15))
_ADDRESS_SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_BREAKER = {BreakerState.CLOSED: 0.0, BreakerState.HALF_OPEN: 1.0, BreakerState.OPEN: 2.0}
# A task that nobody has asked about for so long is not waited for any more.
_TASK_SECONDS = 300.0
# Reasons of a Ready condition, and of a Provider's conditions, that are errors when they begin.
_BEGINNINGS = {
    ("Ready", reasons.WAITING): "deps-not-found",
    ("Ready", reasons.CONSUMER_NOT_ALLOWED): "deps-error",
    ("ProviderRuntimeReady", "InvalidConfiguration"): "runtime-spec-invalid",
    ("ProviderRuntimeReady", "DriverMissing"): "provider-resolve",
    ("ProviderRuntimeReady", "CredentialsMissing"): "provider-resolve",
    ("ProviderRuntimeReady", "DeploymentError"): "deployment-reconcile-failed",
    ("ProviderRuntimeReady", "ServiceError"): "service-reconcile-failed",
    ("TLSConfigured", "SecretRefMissing"): "tls-not-configured",
    ("TLSConfigured", "SecretMissing"): "tls-not-configured",
}


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    lastTransitionTime: str = ""


class _Status(msgspec.Struct):
    ips: list[str] | None = None
    conditions: list[_Condition] | None = None


class _Found(msgspec.Struct):
    status: _Status | None = None


_OBJECTS = msgspec.json.Decoder(_Found)


class ProviderLabels(msgspec.Struct, frozen=True):
    """A Provider, as samples name it."""

    type: str
    provider: str


class BreakerSample(msgspec.Struct, frozen=True):
    """A circuit breaker at a time."""

    state: BreakerState
    failures: int


class VirtrigaudMetrics:
    """Counts what the manager does."""

    def __init__(self, machinery: Machinery, caches: VirtrigaudCaches) -> None:
        metrics, self._clock = machinery.metrics, machinery.clock
        info = metrics.gauge("virtrigaud_build_info", "The program.", ("version", "git_sha", "go_version", "component"))
        info.set(1, paddock.__version__, "", f"python{platform.python_version()}", _COMPONENT)
        self._reconciles = metrics.counter("virtrigaud_manager_reconcile_total", "Reconciles by their outcome.", ("kind", "outcome"))
        self._durations = metrics.histogram(
            "virtrigaud_manager_reconcile_duration_seconds", "How long reconciles took.", ("kind",), _RECONCILE_SECONDS
        )
        self._depth = metrics.gauge("virtrigaud_queue_depth", "Objects that wait for a reconcile (deprecated).", ("kind",))
        provider = ("provider_type", "provider")
        self._operations = metrics.counter("virtrigaud_vm_operations_total", "Operations on machines.", ("operation", *provider, "outcome"))
        self._requests = metrics.counter(
            "virtrigaud_provider_rpc_requests_total", "Calls of providers.", ("provider_type", "method", "code")
        )
        self._latency = metrics.histogram(
            "virtrigaud_provider_rpc_latency_seconds", "How long calls of providers took.", ("provider_type", "method")
        )
        self._inflight = metrics.gauge("virtrigaud_provider_tasks_inflight", "Tasks of providers that are waited for.", provider)
        self._errors = metrics.counter("virtrigaud_errors_total", "Errors by where they began.", ("reason", "component"))
        self._addresses = metrics.histogram(
            "virtrigaud_ip_discovery_duration_seconds",
            "From a machine's creation or start until it has an address.",
            ("provider_type",),
            _ADDRESS_SECONDS,
        )
        self._breakers = metrics.gauge("virtrigaud_circuit_breaker_state", "0 closed, 1 half-open, 2 open.", provider)
        self._breaker_failures = metrics.gauge("virtrigaud_circuit_breaker_failures_total", "Failures that breakers counted.", provider)
        self._caches = caches
        # provider -> task -> when it was last heard of
        self._tasks: dict[ProviderLabels, dict[str, float]] = {}
        metrics.before(self._count_tasks)
        caches.machines.handle(self._machine_changed)
        caches.providers.handle(self._conditions_changed)

    # --- reconciles -------------------------------------------------------------------------------------------------------

    def observe(self, controller: Controller, kind: str) -> None:
        """Count the reconciles of a controller under a kind."""
        self._depth.ask(lambda: len(controller.queue), kind)
        controller.observers.append(lambda _, result, seconds: self._reconciled(kind, result, seconds))

    def _reconciled(self, kind: str, result: str, seconds: float) -> None:
        outcome = _OUTCOMES.get(result, "error")
        self._reconciles.inc(kind, outcome)
        self._durations.observe(seconds, kind)
        if outcome == "error":
            self._errors.inc("reconcile", _COMPONENT)

    # --- calls ------------------------------------------------------------------------------------------------------------

    def called(self, of: ProviderLabels, method: str, code: str, seconds: float) -> None:
        """Count a call that has ended."""
        self._requests.inc(of.type, method, code)
        self._latency.observe(seconds, of.type, method)
        if method in _OPERATIONS:
            self._operations.inc(method, of.type, of.provider, "success" if code == "OK" else "error")
        if code not in ("OK", "Canceled"):
            self._errors.inc(_ERRORS.get(method) or f"provider-{_kebab(method)}", _COMPONENT)

    def task(self, of: ProviderLabels, task: str, *, ended: bool) -> None:
        """Note what a provider said about a task."""
        known = self._tasks.setdefault(of, {})
        if ended:
            known.pop(task, None)
        else:
            known[task] = self._clock.seconds()

    def breakers(self, breaker_samples: Mapping[ProviderLabels, BreakerSample]) -> None:
        """Take over the circuit breakers of now."""
        self._breakers.replace({(of.type, of.provider): _BREAKER[each.state] for of, each in breaker_samples.items()})
        self._breaker_failures.replace({(of.type, of.provider): float(each.failures) for of, each in breaker_samples.items()})

    def forget(self, of: ProviderLabels) -> None:
        """Drop the tasks of a Provider that is gone."""
        self._tasks.pop(of, None)

    def _count_tasks(self) -> None:
        oldest = self._clock.seconds() - _TASK_SECONDS
        for tasks in self._tasks.values():
            for task in [task for task, heard in tasks.items() if heard < oldest]:
                del tasks[task]
        self._inflight.replace({(of.type, of.provider): float(len(tasks)) for of, tasks in self._tasks.items()})

    # --- conditions -------------------------------------------------------------------------------------------------------

    def _conditions_changed(self, change: CacheChange) -> None:
        """Count the errors that began with a change; what was so before this program saw it counts nothing."""
        if change.old is None or change.new is None or change.old.raw == change.new.raw:
            return
        before = {(each.type, each.reason) for each in _conditions(change.old)}
        for each in _conditions(change.new):
            began = _BEGINNINGS.get((each.type, each.reason))
            if began is not None and each.status != "True" and (each.type, each.reason) not in before:
                self._errors.inc(began, _COMPONENT)

    def _machine_changed(self, change: CacheChange) -> None:
        self._conditions_changed(change)
        if change.old is None or change.new is None:
            return
        new = _status(change.new)
        if not new.ips or _status(change.old).ips:
            return
        begun = [each.lastTransitionTime for each in (*_conditions(change.old), *(new.conditions or ())) if _begins(each)]
        since = max((ages.seconds_of(each) or 0.0 for each in begun), default=0.0)
        if since:
            place = self._caches.references(change.new)[0]
            kind = self._caches.provider_type(Key(place.namespace, place.name))
            self._addresses.observe(max(0.0, self._clock.seconds() - since), kind)


def _begins(condition: _Condition) -> bool:
    """Return whether a machine was created or started when this condition began."""
    if condition.type == "PowerTransition":
        return condition.status == "True" and condition.reason == "PoweringOn"
    return condition.type == "Provisioning" and condition.status == "False" and condition.reason == reasons.SUCCESS


def _status(seen: CachedObject) -> _Status:
    return _OBJECTS.decode(seen.raw).status or _Status()


def _conditions(seen: CachedObject) -> Iterator[_Condition]:
    yield from _status(seen).conditions or ()


def _kebab(method: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() and index else each.lower() for index, each in enumerate(method))
