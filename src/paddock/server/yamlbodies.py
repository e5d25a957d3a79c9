"""Reading request bodies that are YAML. Loaded with the first one."""

from typing import Any

from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.manifests.build import DUPLICATE_KEY
from paddock.kubernetes.meta.manifests.limits import ManifestLimits
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema.check import settle
from paddock.kubernetes.schema.finding import Severity

_LIMITS = ManifestLimits()


def read(text: bytes) -> tuple[Any, tuple[str, ...], tuple[tuple[int, str], ...]]:
    """The first document, and the fields that stand twice in it with the line and key of each; raises a `Failure`."""
    try:
        document = next(load(text, "the body", _LIMITS), None)
    except UnreadableManifest as error:
        raise failure.bad_request(f"error decoding YAML: {error}") from None
    if document is None:
        raise failure.bad_request("error decoding YAML: the body is empty")
    for problem in document.problems:
        if problem.finding.rule != DUPLICATE_KEY and problem.finding.severity is Severity.ERROR:
            raise failure.bad_request(f"error decoding YAML: {problem.finding.message}")
    repeated = [problem for problem in document.problems if problem.finding.rule == DUPLICATE_KEY]
    places = tuple((problem.position.line, str(problem.finding.path[-1])) for problem in repeated)
    return settle(document.data), tuple(problem.finding.field for problem in repeated), places
