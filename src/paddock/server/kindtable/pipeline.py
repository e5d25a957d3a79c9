"""The pipeline of a kind of the table."""

from functools import cached_property

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.apply.types import MergeSchema
from paddock.kubernetes.schema.finding import Finding
from paddock.server.kindtable import checking, structure, table
from paddock.server.kindtable.reading import BodyReader
from paddock.server.resources.pipeline import Decoded

# The server reads the metadata of all objects in one place.
_ENVELOPE = frozenset(("apiVersion", "kind", "metadata"))


class TablePipeline:
    """Reads and judges the objects of one version of a kind by its message."""

    def __init__(self, name: str, version_kind: tuple[str, str, str], *, judging: bool = True) -> None:
        """`version_kind` is group, version and kind. Objects that are refused anyway need not be judged."""
        self._name = name
        self._place = version_kind
        self._judging = judging

    @cached_property
    def schema(self) -> MergeSchema:
        return structure.schema(self._name, *self._place)

    def decode(self, raw: Data) -> Decoded:
        """The object as it is stored, with what cannot be read."""
        reader = BodyReader()
        data = reader.read(table.message(self._name), raw, None, _ENVELOPE)
        data.setdefault("metadata", {})
        return Decoded(data, tuple(reader.unknown), tuple(reader.broken))

    def validate(self, new: Data, old: Data | None, *, of_status: bool = False) -> tuple[Finding, ...]:
        """Everything wrong by the table. An update of the status alone is not judged again."""
        if not self._judging or (
            old is not None and all(new.get(name) == old.get(name) for name in new if name not in ("metadata", "status"))
        ):
            return ()
        return tuple(checking.check(table.message(self._name), new))


def blank(name: str, member: str) -> Data:
    """A member that every object has, as it is when nobody has set anything."""
    field = table.message(name).fields[member]
    return BodyReader().read(table.message(field.type), {})
