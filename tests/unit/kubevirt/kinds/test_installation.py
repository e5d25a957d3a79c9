"""The KubeVirt object: each setting has an effect on this server, or an apply names it as one that has none."""

from collections.abc import Iterator

from paddock.kubernetes.schema.shape import ObjectShape, shape_of
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirtConfiguration

# What the engine, the controllers or admission read.
_SELECTORS = ("namespaceLabelSelector", "virtualMachineLabelSelector")
READ = {
    *(f"changedBlockTrackingLabelSelectors.{each}.match{part}" for each in _SELECTORS for part in ("Labels", "Expressions")),
    "cpuModel",
    "developerConfiguration.disabledFeatureGates",
    "developerConfiguration.featureGates",
    "evictionStrategy",
    "imagePullPolicy",
    "instancetype.referencePolicy",
    "liveUpdateConfiguration.maxCpuSockets",
    "liveUpdateConfiguration.maxGuest",
    "liveUpdateConfiguration.maxHotplugRatio",
    "machineType",
    "network.defaultNetworkInterface",
    "vmRolloutStrategy",
}


def honoured(shape: ObjectShape, prefix: str = "") -> Iterator[str]:
    """Yield the settings that do not say that they have no effect."""
    for name, prop in shape.properties.items():
        if isinstance(prop.shape, ObjectShape):
            yield from honoured(prop.shape, f"{prefix}{name}.")
        elif not prop.field.not_honoured:
            yield f"{prefix}{name}"


def test_every_setting_is_read_or_says_that_it_is_not() -> None:
    assert set(honoured(shape_of(KubeVirtConfiguration))) == READ
