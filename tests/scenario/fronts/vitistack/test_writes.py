"""The writes of a Machine until it runs: each is news to everybody who watches, and together they are most of its cost."""

import asyncio
from collections import Counter

from paddock.server.store.contract import CommittedWrite
from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Vitistack, machine

# An object that is made, and its changes after that.
_WRITES = {
    "machines.vitistack.io": 3,
    "persistentvolumeclaims": 2,
    # The second one notes that the disk is filled: a volume that is lost later must not be replaced by a blank one.
    "persistentvolumes": 2,
    "virtualmachines.kubevirt.io": 2,
    "controllerrevisions.apps": 1,
    "virtualmachineinstances.kubevirt.io": 2,
    "events": 5,
}


@played
async def test_what_is_known_together_is_written_together(host: Vitistack, /) -> None:
    written: Counter[str] = Counter()

    def count(changes: tuple[CommittedWrite, ...]) -> None:
        written.update(each.key.collection for each in changes)

    host.api.store.follow(count)
    await host.make(machine())
    await asyncio.sleep(60)
    assert await host.phase() == "Running"
    assert written == _WRITES
