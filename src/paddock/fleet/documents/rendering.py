"""Inputs to the objects of a KubeVirt cluster.

Objects of a front dialect are translated, those that only describe machines (classes, images, networks) are read for them, and
everything that a cluster takes already passes through as it was written.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.lines import LinePrinter
from paddock.dialects import translators as catalog
from paddock.fleet.documents import losses, report
from paddock.fleet.documents.inputobjects import InputObjects
from paddock.fleet.documents.losses import LocatedLoss
from paddock.fleet.documents.objects import InputObject, LocatedFinding, title
from paddock.kubernetes import admission
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss, Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema.finding import Finding


class RenderedObject(msgspec.Struct, frozen=True):
    """An object for a cluster, and the object of the input it comes from. `value` is None for kinds that Paddock does not know."""

    data: dict[str, Any]
    value: Resource | None
    origin: InputObject
    generated: bool


class RenderSummary:
    """The outcome of a translation: what was lost, and which objects failed. With a console, both are printed as they come."""

    def __init__(self, console: LinePrinter | None = None) -> None:
        self._console = console
        self.lost: list[LocatedLoss] = []
        self.failed: list[LocatedFinding] = []

    @property
    def losses(self) -> int:
        return len(self.lost)

    @property
    def failures(self) -> int:
        """The number of objects that failed."""
        return len(self.failed)

    def translate(
        self, translate: catalog.Translate, value: Any, gathered: InputObjects, subject: InputObject, rendering: Rendering
    ) -> tuple[Resource, ...]:
        """Translate one object, noting losses and failures."""
        try:
            translated: Translated[tuple[Resource, ...]] = translate(value, gathered.object_set, rendering)
        except PaddockError as error:
            self.fail(subject, error)
            return ()
        self.lose(translated.losses, value, subject, gathered.titles)
        return translated.value

    def lose(self, lost: Iterable[Loss], value: Resource, subject: InputObject, others: Mapping[str, InputObject]) -> None:
        """Note the losses of the translation of a value that comes from a subject."""
        for each in losses.located(lost, value, subject, others):
            self.lost.append(each)
            if self._console is not None:
                self._console.say(losses.line(each))

    def fail(self, subject: InputObject, error: PaddockError) -> None:
        """Note why an object could not be translated."""
        path = getattr(error, "path", ())
        rule = f"translate/{getattr(error, 'error_type', type(error).__name__)}"
        found = Finding(path=path, message=str(error), rule=rule)
        self.failed.append(LocatedFinding(subject.document.source, subject.document.position(path), subject.title, found))
        if self._console is not None:
            report.tell(self._console, self.failed[-1:])


def dialect_of(subject: InputObject) -> str | None:
    """The dialect whose translator takes an object."""
    kind = subject.admission.kind
    return catalog.taken_by(kind.group, kind.kind) if kind is not None else None


def render(gathered: InputObjects, rendering: Rendering, outcome: RenderSummary) -> list[RenderedObject]:
    """The objects for a cluster, each once, in the order of the input."""
    made: dict[tuple[str, str, str, str], RenderedObject] = {}
    for subject in gathered.subjects:
        for each in _of(subject, gathered, rendering, outcome):
            key = _key(each.data)
            first = made.setdefault(key, each)
            if first is not each and first.data != each.data:
                outcome.fail(subject, _Twice(each.data, first))
    return list(made.values())


def _of(subject: InputObject, gathered: InputObjects, rendering: Rendering, outcome: RenderSummary) -> Iterator[RenderedObject]:
    kind, value = subject.admission.kind, subject.admission.value
    dialect = dialect_of(subject)
    if dialect is not None:
        for resource in outcome.translate(catalog.to_kubevirt(dialect), value, gathered, subject, rendering):
            yield RenderedObject(to_data(resource), resource, subject, generated=True)
    elif kind is None or not catalog.is_read(kind.group, kind.kind):
        yield RenderedObject(subject.data, value if isinstance(value, Resource) else None, subject, generated=False)


class _Twice(PaddockError):
    """Two objects of the input become one of the same name."""

    def __init__(self, data: dict[str, Any], first: RenderedObject) -> None:
        what = f"becomes a {title(data)} that differs from the one that {first.origin.title} becomes"
        super().__init__(what, fix="rename one of them")
        self.path = ("metadata", "name")
        self.error_type = "twice"


def _key(data: dict[str, Any]) -> tuple[str, str, str, str]:
    group, _ = admission.split_api_version(data.get("apiVersion"))
    metadata = data.get("metadata") or {}
    return group, str(data.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or metadata.get("generateName"))
