"""What is done about a machine's power state (docs/spec/virtrigaud.md 2.1.4).

    desired      observed: On                    Off        Suspended   Unknown
    On           -                               on         on          -
    Off          off                             -          off         -
    OffGraceful  shut down once, off when late   -          on          -

A guest that is suspended cannot shut down, so it is resumed before. What a provider cannot tell is left alone until it can.
"""

import msgspec

ON, OFF, GRACEFUL = "On", "Off", "OffGraceful"
SUSPENDED, UNKNOWN = "Suspended", "Unknown"


class PowerDecision(msgspec.Struct, frozen=True):
    """The operation that is due (empty: none), or the seconds that the guest still has to shut down."""

    # on, off, shutdown
    operation: str = ""
    # the guest did not shut down in its time
    forced: bool = False
    wait: float = 0.0

    @property
    def settled(self) -> bool:
        """True if nothing is to be done and nothing is waited for."""
        return not self.operation and not self.wait


NOTHING = PowerDecision()


def desired(given: str | None) -> str:
    """The desired state; without one, a machine is on."""
    return given or ON


def known(observed: str) -> str:
    """A provider's word for a power state as one of ours."""
    words = {"on": ON, "poweredon": ON, "running": ON, "off": OFF, "poweredoff": OFF, "stopped": OFF, "suspended": SUSPENDED}
    return words.get(observed.strip().lower(), UNKNOWN)


def decide(wanted: str, observed: str, *, shutdown_age: float | None, timeout: float) -> PowerDecision:
    """Decide on the next operation. `shutdown_age` is the time since the guest was asked to shut down, if it was."""
    if observed == UNKNOWN or satisfied(wanted, observed):
        return NOTHING
    if wanted == ON or (wanted == GRACEFUL and observed == SUSPENDED):
        return PowerDecision("on")
    if wanted == OFF:
        return PowerDecision("off")
    if shutdown_age is None and timeout > 0:
        return PowerDecision("shutdown")
    left = timeout - (shutdown_age or 0.0)
    return PowerDecision(wait=left) if left > 0 else PowerDecision("off", forced=True)


def satisfied(wanted: str, observed: str) -> bool:
    """Return whether an observed state is the desired one."""
    return observed == (ON if wanted == ON else OFF)
