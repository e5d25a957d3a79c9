"""The health of a Provider and its status (docs/spec/virtrigaud.md 1.5 and 2.4)."""

from collections.abc import Sequence

import msgspec

from paddock.base import duration
from paddock.contract.messages import GetCapabilitiesResponse
from paddock.dialects.virtrigaud.provider import HealthCheck, Provider, ProviderStatus, ReportedCapabilities, RuntimeStatus
from paddock.plan.virtrigaud import reasons
from paddock.plan.virtrigaud.conditions import DELETING, AspectValue, false, settled, true

RUNTIME_READY, AVAILABLE, TLS, CAPABILITIES = "ProviderRuntimeReady", "ProviderAvailable", "TLSConfigured", "CapabilitiesReported"


class ProviderRuntimeFacts(msgspec.Struct, frozen=True):
    """What the program of a Provider is like, as its registry says."""

    # Pending, Starting, Running, Stopping, Failed
    phase: str = "Running"
    # a reason of ProviderRuntimeReady
    reason: str = "DeploymentReady"
    message: str = ""
    endpoint: str = ""
    # whether the connection to the program is encrypted; None: there is no connection
    encrypted: bool | None = None


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
    counts: CheckCounts = CheckCounts()
    # what the last check said; empty: it was well
    problem: str = ""
    checked_at: str | None = None
    machines: int = 0
    capabilities: ReportedCapabilities | None = None
    # why capabilities are not known
    capabilities_problem: str = ""
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


def capabilities(answer: GetCapabilitiesResponse) -> ReportedCapabilities:
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
    )


def _listed(values: Sequence[str]) -> list[str] | None:
    return list(values) or None


def status(provider: Provider, facts: ProviderFacts, now: str) -> ProviderStatus:
    """The status of a Provider."""
    before, runtime = provider.status or ProviderStatus(), facts.runtime
    running = runtime.phase == "Running"
    checks = settings(provider)
    known = is_healthy(before.healthy, facts.counts, checks) if checks.enabled else None
    healthy = known if running else False
    values = [
        AspectValue(RUNTIME_READY, "True" if running else "False", runtime.reason, runtime.message),
        _available(provider, facts, running, healthy),
        *_tls(provider, runtime),
        _capabilities(facts),
        *_deletion(provider, facts),
    ]
    kept = before.reportedCapabilities if facts.capabilities is None and running else facts.capabilities
    return msgspec.structs.replace(
        before,
        healthy=healthy,
        lastHealthCheck=facts.checked_at or before.lastHealthCheck,
        runtime=RuntimeStatus(
            mode=provider.spec.runtime.mode, endpoint=runtime.endpoint or None, phase=runtime.phase, message=runtime.message or None
        ),
        conditions=settled(before.conditions, values, now, provider.metadata.generation),
        observedGeneration=provider.metadata.generation,
        version=facts.version or before.version,
        connectedVMs=facts.machines,
        reportedCapabilities=kept,
    )


def _available(provider: Provider, facts: ProviderFacts, running: bool, healthy: bool | None) -> AspectValue:
    if not running:
        return false(AVAILABLE, "RemoteUnavailable", facts.runtime.message)
    if healthy is None:
        unchecked = "has not been checked yet" if settings(provider).enabled else "is not checked: spec.healthCheck.enabled is false"
        waiting = facts.problem or f"the provider {unchecked}"
        return AspectValue(AVAILABLE, "Unknown", "RemoteUnchecked", waiting)
    if healthy:
        return true(AVAILABLE, "RemoteAvailable", "the provider answers")
    return false(AVAILABLE, "RemoteUnavailable", facts.problem or "the provider does not answer")


def _tls(provider: Provider, runtime: ProviderRuntimeFacts) -> tuple[AspectValue, ...]:
    if runtime.encrypted is None:
        return ()
    if not runtime.encrypted:
        text = "spec.runtime.service.tls.enabled is false: the connection to the provider is not encrypted"
        return (false(TLS, "ExplicitlyDisabled", text),)
    service = provider.spec.runtime.service
    tls = service.tls if service is not None else None
    given = tls.secretRef.name if tls is not None and tls.secretRef is not None else ""
    return (true(TLS, "Enabled", f"with the certificates of Secret {given}" if given else "with managed certificates"),)


def _capabilities(facts: ProviderFacts) -> AspectValue:
    if facts.capabilities is not None:
        return true(CAPABILITIES, "CapabilitiesFetched", "the provider has reported what it can do")
    return false(CAPABILITIES, "CapabilitiesUnavailable", facts.capabilities_problem or "the provider has not been asked yet")


def _deletion(provider: Provider, facts: ProviderFacts) -> tuple[AspectValue, ...]:
    if provider.metadata.deletionTimestamp is None or not facts.machines:
        return ()
    text = f"{facts.machines} machines name the Provider; it goes when they are gone"
    return (true(DELETING, reasons.DELETE_BLOCKED, text),)
