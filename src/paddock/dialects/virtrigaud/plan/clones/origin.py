"""The origin of a clone: kept as a condition, so that a machine which nobody has yet is found again, whatever became of the rest.

It stands in the status, which only controllers write: what it names is asked for its machine, and the machine may be deleted.
"""

import re
from collections.abc import Sequence

import msgspec

from paddock.dialects.virtrigaud.kinds.shared import StatusCondition
from paddock.dialects.virtrigaud.plan.conditions import find

ORIGIN = "Origin"
_TEXT = re.compile(
    r"VirtualMachine (?P<target_namespace>[^/ ]+)/(?P<target>[^ ]+) at Provider (?P<namespace>[^/ ]+)/(?P<provider>[^ ]+)"
    r" for generation (?P<generation>\d+)(?:, as a (?P<linked>linked )?clone of the machine (?P<source>.+))?\Z",
    re.DOTALL,
)


class CloneOrigin(msgspec.Struct, frozen=True):
    """The Provider, the id of the source there, and what identifies the clone. `source` is empty for an image."""

    namespace: str
    provider: str
    target_namespace: str
    target: str
    source: str = ""
    linked: bool = False
    # of the spec that the clone was begun for
    generation: int = 0

    def __str__(self) -> str:
        target = f"VirtualMachine {self.target_namespace}/{self.target} at Provider {self.namespace}/{self.provider}"
        source = f", as a {'linked ' if self.linked else ''}clone of the machine {self.source}" if self.source else ""
        return f"{target} for generation {self.generation}{source}"


def of(conditions: Sequence[StatusCondition] | None) -> CloneOrigin | None:
    """The origin of a clone that was begun."""
    found = find(conditions, ORIGIN)
    match = _TEXT.match(found.message) if found is not None else None
    if match is None:
        return None
    return CloneOrigin(
        namespace=match["namespace"],
        provider=match["provider"],
        target_namespace=match["target_namespace"],
        target=match["target"],
        source=match["source"] or "",
        linked=bool(match["linked"]),
        generation=int(match["generation"]),
    )
