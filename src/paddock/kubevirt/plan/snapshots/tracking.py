"""Which machines have their changed blocks followed, and what their status says of it (docs/spec/kubevirt.md 7.6). Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.kubernetes.meta import selectors

GATE = "IncrementalBackup"
PENDING, INITIALIZING, ENABLED, DISABLED = "PendingRestart", "Initializing", "Enabled", "Disabled"
GATE_OFF = "IncrementalBackupFeatureGateDisabled"


class TrackingFacts(msgspec.Struct, frozen=True):
    """A machine as the decision sees it."""

    # the gate is on
    gate: bool
    # a selector of the KubeVirt object matches the machine or its namespace
    selected: bool
    # the instance is there
    instance: bool = False
    # the engine follows the changes of its disks, since its start
    followed: bool = False


def is_selected(configuration: Mapping[str, Any] | None, machine: Mapping[str, str], namespace: Mapping[str, str]) -> bool:
    """Return whether the selectors of a configuration match a machine by its labels, or by those of its namespace."""
    given = (configuration or {}).get("changedBlockTrackingLabelSelectors") or {}
    for name, labels in (("virtualMachineLabelSelector", machine), ("namespaceLabelSelector", namespace)):
        found = given.get(name)
        if found is not None and selectors.matches(selectors.read(found), labels):
            return True
    return False


def has_gate(configuration: Mapping[str, Any] | None) -> bool:
    """Return whether a configuration turns backups on."""
    developer = (configuration or {}).get("developerConfiguration") or {}
    return GATE in (developer.get("featureGates") or ()) and GATE not in (developer.get("disabledFeatureGates") or ())


def machine_state(before: str, facts: TrackingFacts) -> str:
    """Return the state of a machine; "": it has none. Nothing needs a restart but an instance of an earlier version."""
    if not facts.selected:
        return DISABLED if before else ""
    if not facts.gate:
        return GATE_OFF
    if not facts.instance:
        return before if before == ENABLED else INITIALIZING
    return ENABLED if facts.followed else PENDING


def instance_state(before: str, facts: TrackingFacts) -> str:
    """Return the state of the instance; "": it has none."""
    if not (facts.selected and facts.gate):
        return DISABLED if before else ""
    return ENABLED if facts.followed else before or INITIALIZING
