"""The seconds that a guest gets to shut down. Pure."""

from paddock.kubevirt.kinds.instance import VirtualMachineInstance

_DEFAULT_SECONDS = 30


def grace_of(instance: VirtualMachineInstance) -> int:
    """Return the shorter grace of the two that were given: with the deletion, and in the spec."""
    given = (instance.metadata.deletionGracePeriodSeconds, instance.spec.terminationGracePeriodSeconds)
    return min((each for each in given if each is not None), default=_DEFAULT_SECONDS)
