"""`POST convert`: manifests in another dialect, with what that cannot say."""

import msgspec

from paddock.base.jsondata import Data
from paddock.dialects import translators as catalog
from paddock.fleet import kinds
from paddock.fleet.documents import conversion, losses
from paddock.fleet.documents.inputobjects import errors_of
from paddock.fleet.documents.objects import LocatedFinding
from paddock.fleet.documents.rendering import RenderSummary
from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests import write
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.web.answers.editing import WebComposed, WebFormProblem
from paddock.web.api import manifests
from paddock.web.routes import WebRefusal, WebRequest, WebRoute

DIALECTS = (catalog.HUB, *catalog.DIALECTS)


class _Body(msgspec.Struct, frozen=True):
    yaml: str
    dialect: str


async def convert(request: WebRequest) -> WebComposed:
    """Return the objects of a text in another dialect. Nothing is written."""
    body = request.read(_Body)
    return converted(body.yaml, body.dialect, request.session.namespace)


def converted(text: str, dialect: str, namespace: str) -> WebComposed:
    """Return the objects of a text in another dialect."""
    if dialect not in DIALECTS:
        raise WebRefusal(400, f'there is no dialect "{dialect}"', fix=f"the dialects are {', '.join(DIALECTS)}")
    subjects = manifests.needed(text, AdmissionSettings())
    wrong = [each for subject in subjects for each in errors_of(subject)]
    outcome = RenderSummary()
    made = [] if wrong else conversion.convert(manifests.gathered(subjects), dialect, Rendering(), outcome)
    problems = [_problem(each) for each in (*wrong, *outcome.failed)]
    return WebComposed(
        yaml="" if problems else write.to_yaml(made),
        losses=[losses.sentence(each) for each in outcome.lost],
        remarks=[],
        errors=problems,
        machines=[] if problems else [place for data in made if (place := place_of(data, namespace))],
    )


def place_of(data: Data, namespace: str) -> str:
    """Return the place of an object that is a machine; empty for others."""
    group, _ = admission.split_api_version(data.get("apiVersion"))
    kind = kinds.of(group, str(data.get("kind")))
    metadata = data.get("metadata") or {}
    return f"{kind.word}/{metadata.get('namespace') or namespace}/{metadata.get('name')}" if kind is not None else ""


def _problem(located_finding: LocatedFinding) -> WebFormProblem:
    message = f"{located_finding.title}, line {located_finding.position.line}: {located_finding.finding.message}"
    return WebFormProblem(field=located_finding.finding.field, message=message, fix="")


ROUTES = (WebRoute("POST", "convert", convert),)
