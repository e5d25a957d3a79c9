"""From a body to an object that may be stored: prune, default, validate.

Two kinds of pipeline, one shape: `DeclaredPipeline` for the kinds that Paddock declares itself (built-in kinds and the VM
dialects: schema, rules, rules about changes, all from one declaration), and `StructuralPipeline` (schema/structural) for the
kinds of users' CRDs.
"""

from typing import Any, Protocol

import msgspec

from paddock.kubernetes.schema.finding import Finding


class Decoded(msgspec.Struct, frozen=True):
    """A pruned and defaulted object.

    `unknown` are the findings of pruned fields, `broken` those of types that cannot even be read (built-in kinds), `wrong` what else
    the schema refuses and the value as it stands no longer shows.
    """

    data: dict[str, Any]
    unknown: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    wrong: tuple[Finding, ...] = ()


class Pipeline(Protocol):
    """The processing of every body of a resource, and of every object it serves."""

    @property
    def schema(self) -> dict[str, Any]:
        """The structural OpenAPI schema: list and map types for apply, properties for clients."""

    def decode(self, raw: dict[str, Any]) -> Decoded:
        """Prune and default a new form of an object, which may be changed in place."""

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None, *, of_status: bool = False) -> tuple[Finding, ...]:
        """Everything wrong with a decoded object, errors and warnings; `old` is the stored form of an update.

        `of_status`: the write is one of the status alone.
        """
