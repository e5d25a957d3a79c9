"""Network binding plug-ins that a cluster's KubeVirt takes."""

import re
from collections.abc import Mapping
from typing import Any

# Since this release the plug-ins need no feature gate.
_GATE, _GATELESS = "NetworkBindingPlugins", (1, 5)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.")


def usable(installation: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the plug-ins that a KubeVirt object registers; None if the release refuses all of them, because their gate is off."""
    configuration = (installation.get("spec") or {}).get("configuration") or {}
    gates = (configuration.get("developerConfiguration") or {}).get("featureGates") or ()
    if _GATE not in gates and _needs_gate(str((installation.get("status") or {}).get("observedKubeVirtVersion") or "")):
        return None
    return frozenset((configuration.get("network") or {}).get("binding") or ())


def _needs_gate(version: str) -> bool:
    """A version that cannot be read, such as that of a build of one's own, is a new one."""
    found = _VERSION.match(version)
    return found is not None and (int(found[1]), int(found[2])) < _GATELESS
