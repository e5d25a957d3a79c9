"""Resources of the kinds that Paddock declares itself: built-in kinds and the VM dialects.

Their declaration is the schema, the rules and the rules about changes at once, so a live server and the offline commands say the
same words. The structural schema that clients and apply see is generated from the same declaration.
"""

from functools import cache, cached_property
from typing import Any

import msgspec

from paddock.base.jsonequality import identical_apart
from paddock.kubernetes import catalog, releases
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.meta.apply.types import MergeSchema
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema.check import take
from paddock.kubernetes.schema.finding import Finding, Severity
from paddock.kubernetes.schema.generate import crd
from paddock.kubernetes.schema.kind import AdmissionSettings, Kind, KindFacts, Version
from paddock.kubernetes.schema.messages import FRACTION, TYPE, UNKNOWN_FIELD
from paddock.kubernetes.schema.ruling import rules_of
from paddock.server.resources.pipeline import Decoded
from paddock.server.resources.resource import ALL_VERBS, ServedResource, Subresource
from paddock.server.resources.strategy import CUSTOM, PLAIN, Strategy

# What users say in the metadata; the rest says where the object is.
_WRITTEN = ("labels", "annotations")
_OBSERVED = frozenset(("metadata", "status"))


@cache
def _schema_of(kind: Kind, release: int) -> MergeSchema:
    """A declaration never changes; servers that are made one after the other, as in tests, share what it comes to."""
    schema, fields = crd.schema(kind), releases.fields_of(kind, release)
    return MergeSchema(schema if fields is None else fields.schema(schema))


class DeclaredPipeline:
    """The pipeline of a declared kind. The first object loads the declaration."""

    def __init__(self, facts: KindFacts, settings: AdmissionSettings) -> None:
        self._facts = facts
        self._settings = settings
        self._fields = releases.fields_of(facts, settings.kubevirt_release)
        # by the gates that are on and off
        self._gated: dict[tuple[frozenset[str], frozenset[str]], DeclaredPipeline] = {}

    def under(self, on: frozenset[str], off: frozenset[str]) -> "DeclaredPipeline":
        """The pipeline where these feature gates are turned on and off."""
        if (on, off) not in self._gated:
            settings = msgspec.structs.replace(self._settings, gates=self._settings.gates | on, gates_off=self._settings.gates_off | off)
            # The one of now: they change seldom.
            self._gated = {(on, off): DeclaredPipeline(self._facts, settings)}
        return self._gated[on, off]

    @cached_property
    def _kind(self) -> Kind:
        return catalog.declaration(self._facts)

    @cached_property
    def schema(self) -> dict[str, Any]:
        return _schema_of(self._kind, self._settings.kubevirt_release)

    def decode(self, raw: dict[str, Any]) -> Decoded:
        """Prune, default and check against the schema."""
        broken: list[Finding] = []
        wrong: list[Finding] = []
        known, unknown = self._fields.read(raw) if self._fields is not None else (raw, [])
        left_out = self._fields.left_out(known) if self._fields is not None else []
        # The metadata of all objects is checked by the server, in one place.
        checked = take(self._kind.cls, {**known, "metadata": {}})
        for found in checked.findings:
            if found.rule == UNKNOWN_FIELD:
                unknown.append(found)
            elif found.path[:1] == ("metadata",) or (found.rule == FRACTION and self._facts.takes_fractions):
                continue
            elif self._facts.builtin and found.rule == TYPE:
                broken.append(found)
            else:
                wrong.append(found)
        value = checked.value
        for way in left_out:
            value = releases.without(value, way)
        data = {**value, "metadata": raw.get("metadata", {})}
        return Decoded(data, tuple(unknown), tuple(broken), tuple(wrong))

    def _read(self, data: dict[str, Any]) -> Any:
        """Return the typed object for rules, without managedFields: they are long, and no rule reads them."""
        metadata = {name: value for name, value in data["metadata"].items() if name != "managedFields"}
        return from_data({**data, "metadata": metadata}, self._kind.cls)

    def _is_of_status(self, new: dict[str, Any], old: dict[str, Any], *, of_status: bool) -> bool:
        """Return whether only the status was written. Without a status subresource, that means that all other members are unchanged."""
        if self._facts.status:
            return of_status and "spec" in new and new["spec"] is old.get("spec")
        metadata, before = new["metadata"], old["metadata"]
        return all(metadata.get(name) == before.get(name) for name in _WRITTEN) and identical_apart(new, old, _OBSERVED)

    def validate(self, new: dict[str, Any], old: dict[str, Any] | None, *, of_status: bool = False) -> tuple[Finding, ...]:
        """Return the findings of the kind's rules. A value that was invalid before and has not changed is no error.

        A write of the status alone repeats no findings about the rest.
        """
        if old is not None and self._is_of_status(new, old, of_status=of_status):
            # Few objects have the members that rules about the status read. The others need no typed object.
            due = [rule for rule in self._kind.rules if rule.of_status and _is_given(new, rule.given)]
            value = self._read(new) if due else None
            found = [each for rule in due for each in rule.check(value, self._settings)]
            return tuple(each for each in found if each.severity is not Severity.ERROR or not _untouched(each, new, old))
        value = self._read(new)
        rules = rules_of(self._kind)
        if old is None:
            return tuple(rules.findings(value, self._settings))
        before = self._read(old)
        found = rules.findings(value, self._settings, before if new.get("spec") == old.get("spec") else None)
        found = [each for each in found if each.severity is not Severity.ERROR or not _untouched(each, new, old)]
        for transition in self._kind.transitions:
            found.extend(transition.check(before, value, self._settings))
        return tuple(found)


def _is_given(data: dict[str, Any], ways: tuple[str, ...]) -> bool:
    """Return whether a rule can find anything (`CrossFieldRule.given`). The ways of rules about the status contain members only."""
    return not ways or any(fieldpath.at(data, way) is not None for way in ways)


def _untouched(finding: Finding, new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Return whether the value at the place of a finding is the stored one."""
    return (
        len(finding.path) > 1
        and fieldpath.value_at(new, finding.path) == fieldpath.value_at(old, finding.path)
        and new.get("spec") == old.get("spec")
    )


def resources_of(kind: KindFacts, settings: AdmissionSettings, strategy: Strategy | None = None) -> tuple[ServedResource, ...]:
    """A resource for each served version of a kind."""
    pipeline = DeclaredPipeline(kind, settings)
    served = strategy or (PLAIN if kind.builtin else CUSTOM)
    versions = releases.versions_of(kind, settings.kubevirt_release)
    made = tuple(_resource(kind, version, pipeline, served) for version in versions)
    if any(each.api_version == kind.api_version for each in made):
        return made
    # The release does not serve the version that objects are stored in, and that controllers speak.
    stored = _resource(kind, Version(kind.storage_version), pipeline, served)
    return (*made, msgspec.structs.replace(stored, private=True))


def collection_of(group: str, plural: str) -> str:
    """Return the collection that stores the objects of a group and plural."""
    return f"{plural}.{group}" if group else plural


def _resource(kind: KindFacts, version: Version, pipeline: DeclaredPipeline, strategy: Strategy) -> ServedResource:
    subresources = []
    if kind.status:
        subresources.append(Subresource("status", ("get", "patch", "update")))
    if kind.scale is not None:
        subresources.append(Subresource("scale", ("get", "patch", "update"), "Scale", "autoscaling/v1"))
    return ServedResource(
        group=kind.group,
        version=version.name,
        plural=kind.plural,
        kind=kind.kind,
        collection=collection_of(kind.group, kind.plural),
        pipeline=pipeline,
        strategy=strategy,
        stored_version=kind.api_version,
        singular=kind.singular or kind.kind.lower(),
        namespaced=kind.namespaced,
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=ALL_VERBS if kind.stored else ("create",),
        status=kind.status,
        scale=kind.scale,
        subresources=tuple(subresources),
        columns=kind.columns,
        strategic=kind.builtin,
        unconditional_update=kind.builtin,
        deprecation=version.deprecated,
        declared=True,
    )
