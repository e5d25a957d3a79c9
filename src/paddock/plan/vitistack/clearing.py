"""The order in which a machine is cleared away: one step at a time, each only when what is before it is gone (section 4.4)."""

from typing import Literal

import msgspec

Step = Literal["machine", "claims", "networks", "release"]


class RemainingObjects(msgspec.Struct, frozen=True):
    """What is left of a machine that goes."""

    vm: bool = False
    instance: bool = False
    claims: tuple[str, ...] = ()
    # the networks that still count it among their machines
    networks: tuple[str, ...] = ()

    @property
    def step(self) -> Step:
        """What to do next."""
        if self.vm or self.instance:
            return "machine"
        if self.claims:
            return "claims"
        return "networks" if self.networks else "release"

    @property
    def uses_networks(self) -> bool:
        """Whether something of it may be attached to a network."""
        return self.step in ("machine", "claims")

    def said(self) -> str:
        """What is waited for."""
        if self.step == "machine":
            return "the VirtualMachine to stop"
        if self.step == "claims":
            return f"PersistentVolumeClaim {', '.join(self.claims)} to go"
        return f"NetworkConfiguration {', '.join(self.networks)} to let it go" if self.networks else "nothing"
