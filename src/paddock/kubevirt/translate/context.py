"""Shared parts of the translation: the instance, the objects found for it, and the collector of limits."""

from collections.abc import Mapping

import msgspec

from paddock.base import quantity
from paddock.kubevirt.kinds.domain import CPU, DomainSpec
from paddock.kubevirt.kinds.instance import VirtualMachineInstance, VirtualMachineInstanceSpec
from paddock.kubevirt.translate.limits import LimitCollector
from paddock.kubevirt.translate.resolved import MachineInputs, ResolvedHost


class TranslationContext(msgspec.Struct, frozen=True):
    instance: VirtualMachineInstance
    resolved: MachineInputs
    limits: LimitCollector = msgspec.field(default_factory=LimitCollector)

    @property
    def spec(self) -> VirtualMachineInstanceSpec:
        return self.instance.spec

    @property
    def domain(self) -> DomainSpec:
        return self.spec.domain

    @property
    def host(self) -> ResolvedHost:
        return self.resolved.host

    @property
    def kvm(self) -> bool:
        """True if KVM runs the guest."""
        return self.host.accelerator == "kvm"

    @property
    def amd64(self) -> bool:
        """True if the guest is of this architecture."""
        return (self.spec.architecture or "amd64") == "amd64"

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.instance.metadata.annotations or {}

    @property
    def vcpus(self) -> int:
        """The number of virtual CPUs at the start."""
        cpu = self.domain.cpu or CPU()
        return (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1)

    def asked(self, resource: str) -> int | None:
        """The amount of a resource that is requested, in whole units rounded up."""
        resources = self.domain.resources
        amount = (resources.requests or {}).get(resource) if resources else None
        return None if amount is None else quantity.whole(amount)

    def limit(self, resource: str) -> int | None:
        """The amount of a resource that is allowed, in thousandths rounded up."""
        resources = self.domain.resources
        amount = (resources.limits or {}).get(resource) if resources else None
        return None if amount is None else -(-quantity.parse(amount) // (quantity.UNIT // 1000))
