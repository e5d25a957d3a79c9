"""Manifests as the page sends them: one text with one or more objects."""

from collections.abc import Iterable

from paddock.fleet.documents import objects
from paddock.fleet.documents.inputobjects import InputObjects, collected
from paddock.fleet.documents.inventory import REFERENCE, Inventory
from paddock.fleet.documents.objects import InputObject, LocatedFinding
from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.web.answers.editing import WebFinding
from paddock.web.routes import WebRefusal

SOURCE = "the text"
# A finding about the text as a whole.
UNREADABLE = "input/unreadable"


def subjects(text: str, settings: AdmissionSettings) -> list[InputObject]:
    """Return the objects of a text, each held against its declaration. Raises `UnreadableManifest`."""
    return [InputObject(document, admission.admit(document.data, settings)) for document in objects.documents(text.encode(), SOURCE)]


def needed(text: str, settings: AdmissionSettings) -> list[InputObject]:
    """Return the objects of a text that has to have some. Raises `WebRefusal`."""
    try:
        found = subjects(text, settings)
    except UnreadableManifest as error:
        place = f"line {error.line}, column {error.column}" if error.line else ""
        raise WebRefusal(400, "cannot read the text", why=": ".join(filter(None, (place, error.what))), fix=error.fix) from error
    if not found:
        raise WebRefusal(400, "the text has no objects", fix="write one")
    return found


def gathered(input_objects: Iterable[InputObject]) -> InputObjects:
    """Return objects with the world that they make up."""
    return collected(input_objects, lambda errors: None)


def findings(input_objects: Iterable[InputObject], settings: AdmissionSettings) -> list[WebFinding]:
    """Return what `paddock validate` finds. What refers to other objects is right as far as is known here: the server has those."""
    inventory = Inventory(settings)
    for each in input_objects:
        inventory.add(each)
    return [finding_part(each) for each in inventory.findings() if each.finding.rule != REFERENCE]


def finding_part(located_finding: LocatedFinding) -> WebFinding:
    """Return a finding for the page."""
    severity = located_finding.finding.severity
    return WebFinding(
        line=located_finding.position.line,
        column=located_finding.position.column,
        severity="error" if severity is Severity.ERROR else "warning" if severity is Severity.WARNING else "note",
        field=located_finding.finding.field,
        message=located_finding.finding.message,
        rule=located_finding.finding.rule,
    )


def unreadable(error: UnreadableManifest) -> WebFinding:
    """Return a text that is no YAML as a finding."""
    message = "; ".join(filter(None, (error.what, error.fix)))
    return WebFinding(line=max(error.line, 1), column=max(error.column, 1), severity="error", field="", message=message, rule=UNREADABLE)
