"""Network binding plug-ins that a cluster's KubeVirt takes."""

from collections.abc import Mapping
from typing import Any

from paddock.kubevirt.kinds import gates


def usable(installation: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the plug-ins that a KubeVirt object registers; None if the release refuses all of them, because their gate is off."""
    if not gates.of_installation(installation).has("NetworkBindingPlugins"):
        return None
    configuration = (installation.get("spec") or {}).get("configuration") or {}
    return frozenset((configuration.get("network") or {}).get("binding") or ())
