"""What admission looks at."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from paddock.apiserver.resources.registry import Registry
from paddock.apiserver.resources.strategy import View
from paddock.store.contract import Store


class Question(Protocol):
    """May this user do that? A path, or a resource."""

    @property
    def user(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...
    @property
    def verb(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


# Who may do what.
Judge = Callable[[Question], bool]


class World(NamedTuple):
    """The stored objects, the served kinds, time, and who may do what."""

    store: Store
    registry: Registry
    view: View
    clock: Any
    judge: Judge | None
