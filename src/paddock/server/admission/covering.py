"""An index of the rules that cover a write, computed once for each sort of write."""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from paddock.server.admission.matching import AdmissionAttributes, Matcher, MatchRule
from paddock.server.admission.world import AdmissionContext
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite

Candidates = tuple[tuple[MatchRule, ServedResource], ...]


class ScopedRule(Protocol):
    """Something that is for some writes."""

    @property
    def matcher(self) -> Matcher: ...


Of = TypeVar("Of", bound=ScopedRule)
How = TypeVar("How")


class CoverageIndex(ABC, Generic[Of, How]):
    """Rules read from some collections by following the store, with the way in which each covers a write."""

    def __init__(self, admission: AdmissionContext, *collections: str) -> None:
        self._admission = admission
        self._collections = collections
        # whether there is any at all: asked on every write
        self.any = False
        self._all: tuple[Of, ...] = ()
        self._found: dict[tuple[str, str, str, str, str], tuple[tuple[Of, How], ...]] = {}
        self._edition = -1
        self._load()
        admission.store.follow(self._changed)

    def find(self, asked: AdmissionAttributes) -> tuple[tuple[Of, How], ...]:
        """Those whose rules cover a request."""
        if self._edition != self._admission.registry.edition:
            self._found.clear()
            self._edition = self._admission.registry.edition
        resource = asked.resource
        place = (resource.group, resource.version, resource.plural, asked.operation, asked.subresource)
        found = self._found.get(place)
        if found is None:
            each = ((one, one.matcher.candidates(asked, self._admission)) for one in self._all)
            found = self._found[place] = tuple((one, self._about(candidates)) for one, candidates in each if candidates)
        return found

    @abstractmethod
    def _read(self) -> tuple[Of, ...]:
        """Return the rules that the store holds now."""

    @abstractmethod
    def _about(self, candidates: Candidates) -> How:
        """Return the facts to keep about the rules that cover a write."""

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        if any(change.key.collection in self._collections for change in changes):
            self._load()

    def _load(self) -> None:
        self._found.clear()
        self._all = self._read()
        self.any = bool(self._all)
