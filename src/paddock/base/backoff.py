import random

import msgspec


class Backoff(msgspec.Struct, frozen=True):
    """Waits that grow by a factor up to a longest one. `jitter` is the part of each that chance may take off or put on."""

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.2

    def pause(self, failures: int, chance: random.Random) -> float:
        """The wait after this many failures in a row, the first being 1."""
        # The exponent is bounded, because a float is not.
        plain = min(self.longest, self.first * self.factor ** min(max(failures - 1, 0), 64))
        return plain * chance.uniform(1 - self.jitter, 1 + self.jitter)
