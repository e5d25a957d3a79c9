"""What admission looks at."""

from typing import Any, NamedTuple, Protocol

from paddock.apiserver.resources.registry import Registry
from paddock.apiserver.resources.strategy import View
from paddock.apiserver.security.attributes import Attributes
from paddock.store.contract import Store


class Judge(Protocol):
    """Who may do what."""

    def allows(self, asked: Attributes) -> bool:
        """Whether anything allows a request."""


class World(NamedTuple):
    """The stored objects, the served kinds, time, and who may do what."""

    store: Store
    registry: Registry
    view: View
    clock: Any
    judge: Judge | None
