"""A stand-in of the engine's processor shares."""

from collections.abc import Mapping


class FakeShares:
    """The weights of namespaces, as they were set last."""

    def __init__(self) -> None:
        self.weights: Mapping[str, int] = {}

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Take the weights of namespaces."""
        self.weights = dict(weights)
