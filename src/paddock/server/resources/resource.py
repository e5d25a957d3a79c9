"""Everything the road of a request needs to know of one served group, version and plural."""

from collections.abc import Callable
from typing import Any

import msgspec

from paddock.kubernetes.meta.failure import FailureTarget
from paddock.kubernetes.schema.kind import Column, Scale
from paddock.server.resources.conversion import Conversion
from paddock.server.resources.pipeline import Pipeline
from paddock.server.resources.strategy import Strategy

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Subresource(msgspec.Struct, frozen=True):
    """A path below an object. `kind` and `group_version` are set when it answers with a kind of another group."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    group_version: str = ""
    # more of the path follows: `portforward/8080/tcp`
    below: bool = False


class ServedResource(msgspec.Struct, frozen=True, kw_only=True):
    """One served resource. `collection` names its objects in the store; all versions of a kind share it."""

    group: str
    version: str
    plural: str
    kind: str
    collection: str
    pipeline: Pipeline
    strategy: Strategy
    # the version objects are stored in, as apiVersion
    stored_version: str
    singular: str = ""
    # the kind of its lists, if another than the kind with "List" behind it
    lists: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    # the verbs that discovery lists, if not all that are served: nobody should begin anything new
    offered: tuple[str, ...] = ()
    status: bool = False
    scale: Scale | None = None
    subresources: tuple[Subresource, ...] = ()
    columns: tuple[Column, ...] = ()
    # fields that field selectors may name besides metadata.name and metadata.namespace
    selectable: tuple[str, ...] = ()
    # where a selectable field stands in the stored form, if not under its own name
    stored_fields: dict[str, str] = {}
    # selectable booleans whose absence means false
    flags: tuple[str, ...] = ()
    # makes the rows of a table, where paths cannot say the cells; given the object and the time
    cells: Callable[[dict[str, Any], float], list[Any]] | None = None
    # strategic merge patches: built-in kinds only
    strategic: bool = False
    # PUT to a missing object makes it
    create_on_update: bool = False
    # PUT without resourceVersion overwrites
    unconditional_update: bool = False
    deprecation: str = ""
    # for Paddock's own controllers alone: nobody else finds it
    private: bool = False
    # the schema comes with the program: it does not change while the program runs
    declared: bool = False
    # between the stored form and this version; None where only apiVersion differs
    to_stored: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    from_stored: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    # between the stored form and this version where somebody has to be asked; then the two above are not used
    conversion: Conversion | None = None
    # objects written at this revision or later need no `from_stored`; 0: all need it
    settled_from: int = 0

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """The kind of a list of these."""
        return self.lists or f"{self.kind}List"

    def about(self, name: str = "", uid: str = "") -> FailureTarget:
        """Return the target that a failure about an object of this resource names."""
        return FailureTarget(name=name, group=self.group, kind=self.plural, uid=uid)

    def about_kind(self, name: str) -> FailureTarget:
        """Return the target that an Invalid failure names: the Kind instead of the plural."""
        return FailureTarget(name=name, group=self.group, kind=self.kind)
