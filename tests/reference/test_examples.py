"""Every example that Paddock shows its users, given to the real kubectl with strict validation."""

from pathlib import Path

import pytest
import yaml

from paddock.kubernetes.admission import admit
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.kit import examplefiles
from tests.reference.answers import Answers, definitions
from tests.reference.client import Json, Kubectl
from tests.reference.paddock_side import Example, examples, judge, place_of
from tests.reference.verdict import Question

pytestmark = pytest.mark.reference

FILES = examplefiles.examples()
DOCUMENTS = list(examples())

# What kubectl makes of some examples that are quoted as their authors published them, mistakes and all.
ONLY_PADDOCK_READS = {
    # `powerState: On` without quotes is a boolean to kubectl.
    "virtrigaud/examples/documented.yaml": "spec.powerState in body must be of type string",
}


def identity(example: Example) -> str:
    """Return the place of an example."""
    return f"{example.origin}:{example.document['metadata'].get('name')}"


each_document = pytest.mark.parametrize("example", DOCUMENTS, ids=identity)


def test_there_are_examples() -> None:
    """An empty directory would let everything below pass."""
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: place_of(path))
def test_kubectl_applies_it_strictly_and_without_a_warning(request: pytest.FixtureRequest, answers: Answers, path: Path) -> None:
    refused = ONLY_PADDOCK_READS.get(place_of(path))
    applied = answers.remember(
        ["kubectl apply", path.read_text(), definitions()], lambda _: _applied(request.getfixturevalue("kubectl"), path)
    )
    if refused is None:
        assert applied == {"code": 0, "errors": ""}
    else:
        assert applied["code"] == 1
        assert refused in applied["errors"]


def _applied(kubectl: Kubectl, path: Path) -> Json:
    ran = kubectl.run("apply", "--validate=strict", "-f", str(path))
    kubectl.run("delete", "--ignore-not-found", "--wait=false", "-f", str(path))
    return {"code": ran.code, "errors": ran.errors}


@each_document
def test_both_judges_accept_it(answers: Answers, example: Example) -> None:
    question = Question(example.document, example.resource)
    assert judge(question).complaints == ()
    assert answers.ask(question).complaints == ()


@pytest.mark.parametrize("example", [each for each in DOCUMENTS if "." in each.kind], ids=identity)
def test_both_store_the_same(answers: Answers, example: Example) -> None:
    """Pruning and defaulting come from the same declaration, once compiled here and once into the CRD.

    For kinds of the core group the server has its own defaults.
    """
    ours = admit(example.document, AdmissionSettings()).data
    assert _content(answers.stored(example.resource, example.document).thing) == _content(ours)


def _content(thing: Json) -> str:
    """Return the content without the members that only a server fills in, in an order of its own."""
    return yaml.safe_dump({key: value for key, value in thing.items() if key not in ("metadata", "status")})
