"""Makes fake drivers from a script and a seed. A credential named `script.toml` or `script.json` is a script, too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock_drivers.fake import settings
from paddock_drivers.fake.driver import FakeDriver


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A fake driver with the settings of the script; a seed of the caller replaces the script's."""
    given = [context.credentials / name for name in ("script.toml", "script.json")]
    script = context.script or next((each for each in given if each.is_file()), None)
    found = settings.read(script) if script is not None else settings.FakeSettings()
    if found.directory == settings.FakeSettings().directory:
        found = msgspec.structs.replace(found, directory=str(context.staging))
    if context.seed is not None:
        found = msgspec.structs.replace(found, seed=context.seed)
    yield FakeDriver(found, context.clock)
