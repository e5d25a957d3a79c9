"""A pytest plugin that notes every object that tests let Paddock judge: `-p tests.reference.recorder --record-admissions FILE`.

The tests of the dialects hold hundreds of good and bad objects, rule by rule. Recorded, each becomes a question to the real
server. Each line of the file is one question: `{"new": ..., "old": ... or null}`. The plugin has to be named on the command
line, so that it stands between the tests and the rules before a test module takes hold of `admit`.
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddock.kubernetes import admission
from paddock.kubernetes.admission import AdmissionResult
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.kind import AdmissionSettings


class Recorder:
    """Remembers what was judged; `lines` are in the order of judging, without repetitions."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}
        # Admissions and values by identity, with a reference that keeps the identity theirs.
        self._raw: dict[int, tuple[object, dict[str, Any]]] = {}

    def admit(self, inner: Callable[..., AdmissionResult]) -> Callable[..., AdmissionResult]:
        """`admit`, noting what it was asked with the settings of the product."""

        @functools.wraps(inner)
        def noted(raw: dict[str, Any], settings: AdmissionSettings, *more: Any, **named: Any) -> AdmissionResult:
            admitted = inner(raw, settings, *more, **named)
            if settings == AdmissionSettings() and not more and not named:
                self._note(raw, None)
                for known in (admitted, admitted.value):
                    self._raw[id(known)] = (known, raw)
            return admitted

        return noted

    def admit_change(self, inner: Callable[..., AdmissionResult]) -> Callable[..., AdmissionResult]:
        """`admit_change`, noting the pair when both were admitted before."""

        @functools.wraps(inner)
        def noted(old: Object, new: AdmissionResult, settings: AdmissionSettings) -> AdmissionResult:
            before, after = self._raw.get(id(old)), self._raw.get(id(new))
            if before and after and settings == AdmissionSettings():
                self._note(after[1], before[1])
            return inner(old, new, settings)

        return noted

    def _note(self, new: dict[str, Any], old: dict[str, Any] | None) -> None:
        try:
            self.lines[json.dumps({"new": new, "old": old}, allow_nan=False)] = None
        except (TypeError, ValueError):
            # Not JSON, so nothing that can be sent to a server.
            return


RECORDER = Recorder()
admission.admit = RECORDER.admit(admission.admit)
admission.admit_change = RECORDER.admit_change(admission.admit_change)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file to write."""
    parser.addoption("--record-admissions", metavar="FILE", required=True, help="write every judged object, one JSON line each")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Writes it."""
    Path(session.config.getoption("--record-admissions")).write_text("".join(f"{line}\n" for line in RECORDER.lines))
