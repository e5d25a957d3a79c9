"""A request script: the same words are said to two servers, each answers for itself.

Servers choose revisions and identities by themselves, so a script cannot name them. It names them by what they were: `Known`
stands for something the server being spoken to said earlier of the object at a path.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Which = Literal["uid", "revision", "first revision"]


@dataclass(frozen=True)
class Known:
    """A value of the server itself about the object at a path: its identity, its present revision, or its first."""

    path: str
    which: Which


@dataclass(frozen=True)
class Step:
    """One request. A body may hold `Known`s anywhere; `about` is the path of the object it is about, where there is one."""

    method: str
    path: str
    query: tuple[tuple[str, Any], ...] = ()
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def kind(self) -> str:
        """The sort of this request, in a word or two."""
        if self.method != "PATCH":
            return self.method
        return {"application/apply-patch+yaml": "APPLY"}.get(
            self.content_type, f"PATCH {self.content_type.partition('/')[2].partition('-patch')[0]}"
        )


@dataclass(frozen=True)
class Scene:
    """Steps in a namespace of their own, so that a disagreement in one does not reach the others."""

    namespace: str
    steps: list[Step] = field(default_factory=list)
