"""The reasons why a config gives no command line."""

from typing import Literal

from paddock.base.errors import Terminal

Reason = Literal[
    # a value that no option of QEMU can carry
    "unusable-value",
    # this QEMU, or this host, has not got it
    "missing-on-host",
    # more devices than there are places for
    "no-room",
    # two things want the same place, or a place that is not there
    "bad-address",
    # a cache or I/O mode that the file cannot have
    "storage-cannot",
]


class UnstartableConfig(Terminal):
    """This config cannot be started on this host. `reason` says what kind of trouble it is, `of` names the part."""

    def __init__(self, what: str, *, reason: Reason, of: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason: Reason = reason
        self.of = of


def missing(of: str, what: str, fix: str = "") -> UnstartableConfig:
    """This QEMU or this host lacks `what`."""
    return UnstartableConfig(f"cannot start {of}", reason="missing-on-host", of=of, why=f"this host has no {what}", fix=fix)


def unusable(of: str, why: str) -> UnstartableConfig:
    """A value cannot be given to QEMU."""
    return UnstartableConfig(f"cannot use {of}", reason="unusable-value", of=of, why=why)
