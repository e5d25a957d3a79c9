"""Every case, in the order of a run."""

from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases import extensions, images, inputs, machines, power, provider, reconfigure, snapshots, transfers

CASES: tuple[ConformanceCase, ...] = (
    *provider.CASES,
    *machines.CASES,
    *power.CASES,
    *reconfigure.CASES,
    *snapshots.CASES,
    *images.CASES,
    *transfers.CASES,
    *inputs.CASES,
    *extensions.CASES,
)
