"""The pipelines of users' kinds and of the definition that makes them."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.apply.types import MergeSchema
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubernetes.schema.structural import reading, validating
from paddock.kubernetes.schema.structural.node import ABSENT, SchemaNode, has_rules, without_defaults
from paddock.kubernetes.schema.structural.shaping import ShapeNotes, shape
from paddock.server.custom import definition
from paddock.server.resources.declared import DeclaredPipeline
from paddock.server.resources.pipeline import Decoded

if TYPE_CHECKING:
    from paddock.kubernetes.schema.structural import expressions


class StructuralPipeline:
    """The pipeline of one version of a user's kind; nothing is read of the schema before an object needs it."""

    def __init__(self, schema: Data) -> None:
        self.schema = MergeSchema(schema)
        self._root = SchemaNode(schema, root=True)

    @cached_property
    def _rules(self) -> "expressions.CelRules | None":
        if not has_rules(self.schema):
            return None
        # Deliberately late: CEL is a large piece of program, and comes with the first rule.
        from paddock.kubernetes.schema.structural import expressions  # noqa: PLC0415

        return expressions.rules_of(self._root)

    @cached_property
    def _bare(self) -> SchemaNode:
        return SchemaNode(without_defaults(self.schema), root=True)

    def prune(self, data: Data) -> Data:
        """An object that comes from another version: without what this one does not declare. Its defaults are the other's."""
        pruned: Data = shape(self._bare, data, ShapeNotes())
        return pruned

    def decode(self, raw: Data) -> Decoded:
        """Prune and default."""
        noted = ShapeNotes()
        data = shape(self._root, raw, noted)
        return Decoded(data, tuple(noted.unknown), tuple(noted.broken))

    def settle(self, data: Data) -> Data:
        """A stored object as this version has it now: defaults that came later, without members that went."""
        settled: Data = shape(self._root, data, ShapeNotes())
        return settled

    def validate(self, new: Data, old: Data | None, *, of_status: bool = False) -> tuple[Finding, ...]:
        """Everything wrong; what an update does not touch is not judged again."""
        found: list[Finding] = []
        before = ABSENT if old is None else old
        validating.check(self._root, new, before, None, found)
        if old is not None and any(each.rule == validating.DUPLICATE for each in found) and self._repeats(old):
            # Who has repeated entries already may keep them, in any list.
            found = [each for each in found if each.rule != validating.DUPLICATE]
        if self._rules is not None:
            found.extend(self._rules.check(new, before, blocked=any(each.rule in validating.BLOCKING for each in found)))
        return tuple(found)

    def _repeats(self, data: Data) -> bool:
        return any(each.rule == validating.DUPLICATE for each in validating.fits(self._root, data))


class DefinitionPipeline(DeclaredPipeline):
    """The pipeline of CustomResourceDefinitions: as declared, with the schemas inside read word by word."""

    def __init__(self) -> None:
        super().__init__(definition.KIND, AdmissionSettings())

    def decode(self, raw: Data) -> Decoded:
        """Prune, default and check."""
        decoded = super().decode(raw)
        noted = ShapeNotes()
        for index, version in enumerate((decoded.data.get("spec") or {}).get("versions") or ()):
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                trail: Any = None
                for step in ("spec", "versions", index, "schema", "openAPIV3Schema"):
                    trail = (trail, step)
                version["schema"]["openAPIV3Schema"] = reading.read(schema, trail, noted)
        return Decoded(decoded.data, (*decoded.unknown, *noted.unknown), (*decoded.broken, *noted.broken), decoded.wrong)
