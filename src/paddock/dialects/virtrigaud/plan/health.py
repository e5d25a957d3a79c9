"""The health of a Provider and its status (docs/spec/virtrigaud.md 1.5 and 2.4)."""

from collections.abc import Sequence

import msgspec

from paddock.base import duration
from paddock.contract.features import CLUSTERING
from paddock.contract.messages import GetCapabilitiesResponse
from paddock.dialects.virtrigaud.kinds.provider import HealthCheck, Provider, ProviderStatus, ReportedCapabilities, RuntimeStatus
from paddock.dialects.virtrigaud.kinds.shared import SecretName
from paddock.dialects.virtrigaud.plan import answers, programplaces, reasons
from paddock.dialects.virtrigaud.plan.conditions import DELETING, TLS, UNSUPPORTED, AspectValue, false, settled, true, without
from paddock.dialects.virtrigaud.plan.programplaces import ProgramPlace

# A provider that names more has lost its way.
_MOST_FEATURES = 100
RUNTIME_READY, AVAILABLE, CAPABILITIES = "ProviderRuntimeReady", "ProviderAvailable", "CapabilitiesReported"
VERIFIED = "HypervisorVerified"
_UNCHECKED, _UNREPORTED = "RemoteUnchecked", "CapabilitiesUnavailable"


class ProviderRuntimeFacts(msgspec.Struct, frozen=True):
    """What the program of a Provider is like, as its registry says."""

    # Pending, Starting, Running, Stopping, Failed
    phase: str = "Running"
    # a reason of ProviderRuntimeReady
    reason: str = "DeploymentReady"
    message: str = ""
    endpoint: str = ""
    # how the connection to the program is secured; None: there is none to secure
    tls: AspectValue | None = None
    # of a cluster: its Service, and how many of its Pods are ready and available
    service: str = ""
    ready: int | None = None
    available: int | None = None
    place: ProgramPlace = ProgramPlace.PODS

    @property
    def starts(self) -> bool:
        """True for a program that is on its way: it is waited for, and has not failed."""
        return self.phase in ("Pending", "Starting")


class HealthProblem(msgspec.Struct, frozen=True):
    """What a check of the health found. Without a message, the provider is well."""

    message: str = ""
    # the reason code
    code: str = ""


class CheckCounts(msgspec.Struct, frozen=True):
    """Checks of the health in a row."""

    failures: int = 0
    successes: int = 0

    def after(self, problem: str) -> "CheckCounts":
        """The counts after one more check."""
        return CheckCounts(failures=self.failures + 1) if problem else CheckCounts(successes=self.successes + 1)


class ProviderFacts(msgspec.Struct, frozen=True):
    """Everything that a Provider's status is made from."""

    runtime: ProviderRuntimeFacts
    # there is a driver to ask
    connected: bool = True
    counts: CheckCounts = CheckCounts()
    # what the last check said; empty: it was well
    problem: HealthProblem = HealthProblem()
    checked_at: str | None = None
    machines: int = 0
    # that go, and are yet to be deleted there
    images: int = 0
    capabilities: ReportedCapabilities | None = None
    # why capabilities are not known
    capabilities_problem: HealthProblem = HealthProblem()
    version: str | None = None


def settings(provider: Provider) -> HealthCheck:
    """How its health is checked."""
    return provider.spec.healthCheck or HealthCheck()


def interval(provider: Provider) -> float:
    """Seconds between two checks."""
    return max(1.0, duration.parse(settings(provider).interval) / duration.SECOND)


def timeout(provider: Provider) -> float:
    """Seconds that a check may take."""
    return max(0.1, duration.parse(settings(provider).timeout) / duration.SECOND)


def is_healthy(before: bool | None, counts: CheckCounts, check: HealthCheck) -> bool | None:
    """The health after a check: it changes when a threshold is reached, and is not known before the first one is."""
    if counts.failures >= check.failureThreshold:
        return False
    if counts.successes >= check.successThreshold:
        return True
    return before


def capabilities(answer: GetCapabilitiesResponse, features: Sequence[str] = ()) -> ReportedCapabilities:
    """What a provider reports, as its status shows it."""
    return ReportedCapabilities(
        supportsReconfigureOnline=answer.supports_reconfigure_online,
        supportsDiskExpansionOnline=answer.supports_disk_expansion_online,
        supportsSnapshots=answer.supports_snapshots,
        supportsMemorySnapshots=answer.supports_memory_snapshots,
        supportsLinkedClones=answer.supports_linked_clones,
        supportsImageImport=answer.supports_image_import,
        supportsDiskExport=answer.supports_disk_export,
        supportsDiskImport=answer.supports_disk_import,
        supportsExportCompression=answer.supports_export_compression,
        supportedDiskTypes=_listed(answer.supported_disk_types),
        supportedNetworkTypes=_listed(answer.supported_network_types),
        supportedExportFormats=_listed(answer.supported_export_formats),
        supportedImportFormats=_listed(answer.supported_import_formats),
        supportedExportBackends=_listed(answer.supported_export_backends),
        supportedImportBackends=_listed(answer.supported_import_backends),
        supportedTransferModes=_listed(answer.supported_transfer_modes),
        features=_listed(sorted({*features, *((CLUSTERING,) if answer.supports_clustering else ())})[:_MOST_FEATURES]),
    )


def _listed(values: Sequence[str]) -> list[str] | None:
    return answers.words(values) or None


def status(provider: Provider, facts: ProviderFacts, now: str) -> ProviderStatus:
    """The status of a Provider."""
    before, runtime = provider.status or ProviderStatus(), facts.runtime
    running = runtime.phase == "Running"
    checks = settings(provider)
    known = is_healthy(before.healthy, facts.counts, checks) if checks.enabled else None
    # While a program restarts, its driver stays, and the checks decide.
    healthy = known if facts.connected else False
    values = [
        AspectValue(RUNTIME_READY, "True" if running else "False", runtime.reason, runtime.message),
        _available(provider, facts, healthy),
        *([runtime.tls] if runtime.tls is not None else []),
        _capabilities(facts),
        *_verification(provider),
        *_unused(provider, runtime),
        *_deletion(provider, facts),
    ]
    kept = before.reportedCapabilities if facts.capabilities is None and facts.connected else facts.capabilities
    return msgspec.structs.replace(
        before,
        healthy=healthy,
        lastHealthCheck=facts.checked_at or before.lastHealthCheck,
        runtime=RuntimeStatus(
            mode=provider.spec.runtime.mode,
            endpoint=runtime.endpoint or None,
            serviceRef=SecretName(name=runtime.service) if runtime.service else None,
            phase=runtime.phase,
            message=runtime.message or None,
            readyReplicas=runtime.ready,
            availableReplicas=runtime.available,
        ),
        conditions=settled(without(before.conditions, *_over(provider, runtime)), values, now, provider.metadata.generation),
        observedGeneration=provider.metadata.generation,
        version=facts.version or before.version,
        connectedVMs=facts.machines,
        reportedCapabilities=kept,
    )


def _available(provider: Provider, facts: ProviderFacts, healthy: bool | None) -> AspectValue:
    if not facts.connected:
        return _unserved(AVAILABLE, "RemoteUnavailable", facts)
    if healthy is None:
        unchecked = "has not been checked yet" if settings(provider).enabled else "is not checked: spec.healthCheck.enabled is false"
        waiting = facts.problem.message or f"the provider {unchecked}"
        return AspectValue(AVAILABLE, "Unknown", _UNCHECKED, waiting)
    if healthy:
        return true(AVAILABLE, "RemoteAvailable", "the provider answers")
    return false(AVAILABLE, facts.problem.code or "RemoteUnavailable", facts.problem.message or "the provider does not answer")


def _verification(provider: Provider) -> tuple[AspectValue, ...]:
    if not provider.spec.insecureSkipVerify:
        return ()
    text = "spec.insecureSkipVerify is true: the provider takes any certificate of the hypervisor (development only)"
    return (false(VERIFIED, "InsecureSkipVerify", text),)


def _unused(provider: Provider, runtime: ProviderRuntimeFacts) -> tuple[AspectValue, ...]:
    found = programplaces.unused(provider, runtime.place)
    return (true(UNSUPPORTED, reasons.UNSUPPORTED, f"nothing acts on {', '.join(found)}: {runtime.place}"),) if found else ()


def _over(provider: Provider, runtime: ProviderRuntimeFacts) -> tuple[str, ...]:
    """The conditions that no longer concern the Provider."""
    found = [TLS] if runtime.tls is None else []
    found += [UNSUPPORTED] if not programplaces.unused(provider, runtime.place) else []
    return (*found, VERIFIED) if not provider.spec.insecureSkipVerify else tuple(found)


def _capabilities(facts: ProviderFacts) -> AspectValue:
    if facts.capabilities is not None:
        return true(CAPABILITIES, "CapabilitiesFetched", "the provider has reported what it can do")
    if not facts.connected:
        return _unserved(CAPABILITIES, _UNREPORTED, facts)
    found = facts.capabilities_problem
    if not found.message:
        return false(CAPABILITIES, _UNCHECKED, "the provider has not been asked yet")
    return false(CAPABILITIES, found.code or _UNREPORTED, found.message)


def _unserved(type: str, reason: str, facts: ProviderFacts) -> AspectValue:
    """What a condition says of a program that is not there."""
    return false(type, facts.runtime.reason if facts.runtime.starts else reason, facts.runtime.message)


def _deletion(provider: Provider, facts: ProviderFacts) -> tuple[AspectValue, ...]:
    waits = [f"{facts.machines} machines that name it"] if facts.machines else []
    waits += [f"{facts.images} images that it deletes"] if facts.images else []
    if provider.metadata.deletionTimestamp is None or not waits:
        return ()
    text = f"the Provider goes when {' and '.join(waits)} are gone"
    return (true(DELETING, reasons.DELETE_BLOCKED, text),)
