from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.strategy import ObjectView
from paddock.server.store.contract import Store


class AccessQuestion(Protocol):
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
Judge = Callable[[AccessQuestion], bool]


class AdmissionContext(NamedTuple):
    """The stored objects, the served kinds, time, and who may do what."""

    store: Store
    registry: ResourceRegistry
    view: ObjectView
    clock: Any
    judge: Judge | None
    # instances stand for their launcher Pods, because nobody else makes these
    launchers: bool = False
