"""The six metrics of the documents (docs/spec/vitistack.md section 4.8), under their names: gauges, too, end in `_total`."""

from collections import Counter

import msgspec

from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.controllers.reader import VitistackCaches, brief
from paddock.dialects.vitistack.kinds.marks import API_VERSION, MACHINE
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.machinery import Machinery

_PREFIX = "kubevirt_operator_"
# A claim may wait for minutes for its volume.
_PROVISIONING_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class _VmStatus(msgspec.Struct):
    printableStatus: str = ""


class _Vm(msgspec.Struct):
    status: _VmStatus = msgspec.field(default_factory=_VmStatus)


class _Dated(msgspec.Struct):
    creationTimestamp: str = ""


class _Claim(msgspec.Struct):
    metadata: _Dated


_VMS, _CLAIMS = msgspec.json.Decoder(_Vm), msgspec.json.Decoder(_Claim)


class VitistackMetrics:
    """Counts. The gauges are counted from the caches whenever somebody looks."""

    def __init__(self, machinery: Machinery, caches: VitistackCaches) -> None:
        metrics, self._caches, self._clock = machinery.metrics, caches, machinery.clock
        self._machines = metrics.gauge(f"{_PREFIX}machines_total", "Machines by phase and template.", ("phase", "template"))
        self._vms = metrics.gauge(f"{_PREFIX}virtual_machines_total", "VirtualMachines of Machines by their status.", ("status",))
        self._durations = metrics.histogram(f"{_PREFIX}reconciliation_duration_seconds", "Duration of reconciles.", ("controller",))
        self._errors = metrics.counter(
            f"{_PREFIX}reconciliation_errors_total", "Reconciles that ended with an error, by its type.", ("controller", "error_type")
        )
        self._network_errors = metrics.counter(
            f"{_PREFIX}network_configuration_errors_total", "Failures with a NetworkConfiguration.", ("network_name",)
        )
        self._provisioning = metrics.histogram(
            f"{_PREFIX}storage_provisioning_duration_seconds",
            "From the making of a claim until it is bound.",
            ("storage_class",),
            _PROVISIONING_SECONDS,
        )
        metrics.before(self._count)
        self._began = self._clock.seconds()
        caches.claims.handle(self._claim_changed)

    def failed(self, controller: str, error_type: str) -> None:
        """A look failed, or found that something is wrong."""
        self._errors.inc(controller, error_type)

    def network_failed(self, name: str) -> None:
        """Something is wrong with a network."""
        self._network_errors.inc(name)

    def observe(self, controller: Controller, name: str) -> None:
        """Note how long its looks take, under this name."""
        controller.observers.append(lambda _, result, seconds: self._durations.observe(seconds, name))

    def _count(self) -> None:
        machines: Counter[tuple[str, ...]] = Counter()
        for seen in self._caches.machines.cache:
            found = brief(seen)
            machines[found.phase, found.spec.template or "none"] += 1
        self._machines.replace(dict(machines))
        vms: Counter[tuple[str, ...]] = Counter()
        for seen in self._caches.vms.cache:
            if _is_of_machine(seen):
                vms[(_VMS.decode(seen.raw).status.printableStatus or "Unknown",)] += 1
        self._vms.replace(dict(vms))

    def _claim_changed(self, change: CacheChange) -> None:
        """A claim of ours that is bound for the first time, as far as the metrics know."""
        new = change.new
        if new is None or MACHINE not in (new.meta.labels or {}) or new.read(targets.CLAIMS).status.phase != "Bound":
            return
        made = ages.seconds_of(_CLAIMS.decode(new.raw).metadata.creationTimestamp) or 0.0
        if change.old is None:
            # It was bound before anybody saw it: a moment ago, or before this program began.
            is_new = made >= self._began
        else:
            is_new = change.old.read(targets.CLAIMS).status.phase != "Bound"
        if is_new:
            self._provisioning.observe(max(self._clock.seconds() - made, 0.0), new.read(targets.CLAIMS).spec.storageClassName or "")


def _is_of_machine(seen: CachedObject) -> bool:
    owner = seen.meta.owner
    return owner is not None and (owner.apiVersion, owner.kind) == (API_VERSION, targets.MACHINES.kind)
