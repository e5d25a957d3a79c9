"""Factories of drivers: what a program that serves drivers gives to one, and what it gets."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from paddock.base.clock import Clock
from paddock.contract.description import DescriptionTranslator
from paddock.contract.driver import Driver

CREDENTIALS = Path("/etc/virtrigaud/credentials")
STAGING = Path("/mnt/migration-storage")


class DriverContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver may need from the program that serves it."""

    clock: Clock
    environment: Mapping[str, str] = {}
    # the folder with a file for each credential, and the one with a subfolder for each staging claim
    credentials: Path = CREDENTIALS
    staging: Path = STAGING
    # of a driver that keeps machines as KubeVirt objects
    translation: DescriptionTranslator | None = None
    # the fake driver's
    script: Path | None = None
    seed: int | None = None


# A factory's driver lives as long as the block that it opens.
DriverFactory = Callable[[DriverContext], AbstractAsyncContextManager[Driver]]
