"""The rules of VirtRigaud's VMSnapshot."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.virtrigaud.kinds import cron
from paddock.dialects.virtrigaud.rules import machine
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmsnapshot import VMSnapshot

SCHEDULE = "virtrigaud/schedule"
MEMORY = "virtrigaud/snapshot-memory"
ENCRYPTION = "virtrigaud/snapshot-encryption"


@rule(
    SCHEDULE,
    Cel(
        "spec.schedule",
        "!self.enabled || (has(self.cronSpec) && self.cronSpec.size() > 0)",
        "a schedule that runs needs a time",
        ".cronSpec",
        "FieldValueRequired",
    ),
)
def schedules_can_be_kept(snapshot: "VMSnapshot", settings: AdmissionSettings) -> Iterator[Finding]:
    """A schedule that runs has a time, and the time is one that comes."""
    schedule = snapshot.spec.schedule
    if schedule is None:
        return
    path = ("spec", "schedule", "cronSpec")
    if schedule.cronSpec:
        why = cron.problem(schedule.cronSpec)
        if why:
            yield finding.invalid(path, schedule.cronSpec, why, SCHEDULE)
    elif schedule.enabled:
        yield finding.required(path, SCHEDULE, "a schedule that runs needs a time")


@rule(machine.TIMEOUT)
def spans_are_not_negative(snapshot: "VMSnapshot", settings: AdmissionSettings) -> Iterator[Finding]:
    """Ages and grace periods are not negative."""
    policy = snapshot.spec.retentionPolicy
    if policy is not None:
        for name in ("maxAge", "gracePeriod"):
            yield from machine.not_negative(getattr(policy, name), ("spec", "retentionPolicy", name))


@rule(MEMORY)
def memory_is_consistent_by_itself(snapshot: "VMSnapshot", settings: AdmissionSettings) -> Iterator[Finding]:
    """A snapshot with memory needs no quiesced filesystems and cannot be only crash consistent (a warning)."""
    config = snapshot.spec.snapshotConfig
    if config is not None and config.includeMemory and config.type == "Crash":
        text = 'a snapshot with memory holds the running guest, so type "Crash" has no effect'
        yield finding.warning(("spec", "snapshotConfig", "type"), text, MEMORY)


@rule(ENCRYPTION)
def keys_are_for_encryption(snapshot: "VMSnapshot", settings: AdmissionSettings) -> Iterator[Finding]:
    """Keys belong to an encryption that is enabled (a warning)."""
    encryption = snapshot.spec.snapshotConfig.encryption if snapshot.spec.snapshotConfig is not None else None
    if encryption is None or encryption.enabled:
        return
    for member in ("keyProvider", "keyRef"):
        if getattr(encryption, member) is not None:
            path = ("spec", "snapshotConfig", "encryption", member)
            yield finding.warning(path, "has no effect while enabled is false", ENCRYPTION)


RULES = (schedules_can_be_kept, spans_are_not_negative, memory_is_consistent_by_itself, keys_are_for_encryption)
