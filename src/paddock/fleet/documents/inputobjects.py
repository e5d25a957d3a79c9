"""All objects of the inputs at once, for commands that look at objects together: typed, and as the world of a translation."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from paddock.base.lines import LinePrinter
from paddock.fleet.documents import report
from paddock.fleet.documents.inventory import foreign
from paddock.fleet.documents.objects import InputObject, InputReader, LocatedFinding, located
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Severity


class InputObjects(msgspec.Struct, frozen=True):
    """The objects of the inputs. `refused` counts those that have errors; they are among the subjects, not in the world."""

    subjects: tuple[InputObject, ...]
    object_set: ObjectSet
    refused: int
    titles: dict[str, InputObject]

    def narrowed(self, subjects: Sequence[InputObject]) -> "InputObjects":
        """Some of the objects, in the same world."""
        return msgspec.structs.replace(self, subjects=tuple(subjects), refused=0)


def gather(reader: InputReader, names: Sequence[str], console: LinePrinter) -> InputObjects:
    """Read everything; errors go to standard error."""
    return collected(reader.subjects(names), lambda wrong: report.tell(console, wrong))


def collected(subjects: Iterable[InputObject], tell: Callable[[list[LocatedFinding]], None]) -> InputObjects:
    """Return objects with the world that they make up. `tell` gets the errors of each object that has some."""
    subjects = tuple(subjects)
    refused = 0
    for subject in subjects:
        wrong = errors_of(subject)
        if wrong:
            refused += 1
            tell(wrong)
    object_set = ObjectSet(subject.admission.value for subject in subjects if isinstance(subject.admission.value, Resource))
    return InputObjects(subjects, object_set, refused, {subject.title: subject for subject in subjects})


def errors_of(subject: InputObject) -> list[LocatedFinding]:
    """Return the errors that prevent the use of an object."""
    findings = subject.admission.findings
    if subject.admission.kind is None:
        findings = foreign(subject.document.data, findings)
    return [found for found in located(subject, findings) if found.finding.severity is Severity.ERROR]
