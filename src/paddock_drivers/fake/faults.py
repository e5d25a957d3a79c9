"""Faults: which of the script's hit a call."""

import random
from collections.abc import Sequence
from fnmatch import fnmatchcase

from paddock_drivers.fake.settings import RpcFault


class FaultScript:
    """Counts the calls, and finds the faults of each."""

    def __init__(self, faults: Sequence[RpcFault], chance: random.Random) -> None:
        self._faults = tuple(faults)
        self._chance = chance
        self._calls = [0] * len(self._faults)
        self._hits = [0] * len(self._faults)

    def of_call(self, rpc: str) -> list[RpcFault]:
        """The faults of the next call of an RPC."""
        found = []
        for index, fault in enumerate(self._faults):
            if not fnmatchcase(rpc, fault.rpc):
                continue
            self._calls[index] += 1
            spent = fault.count and self._hits[index] >= fault.count
            if self._calls[index] <= fault.after or spent or self._chance.random() >= fault.probability:
                continue
            self._hits[index] += 1
            found.append(fault)
        return found
