"""The format of a conformance spec: a list of cases, each with steps and a cleanup."""

import string
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
import yaml

from paddock.base import duration
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data

StepType = Literal["create", "update", "delete", "wait", "validate"]
WaitCondition = Literal["Ready", "Available", "Running", "Stopped", "Deleted", "Failed", "Provisioned"]
Operator = Literal["eq", "ne", "gt", "lt", "gte", "lte", "contains", "matches", "exists"]
# What a case may require, and the capabilities that a Provider reports for it; nothing is reported for what every provider can do.
CAPABILITIES: Mapping[str, str] = {
    **dict.fromkeys(("vm-create", "vm-delete", "vm-power", "vm-list", "vm-describe", "vm-reconfigure"), ""),
    "vm-reconfigure-online": "supportsReconfigureOnline",
    "vm-disk-expand": "supportsDiskExpansionOnline",
    "vm-snapshot": "supportsSnapshots",
    "vm-snapshot-memory": "supportsMemorySnapshots",
    "vm-linked-clone": "supportsLinkedClones",
    "vm-clone": "",
    "image-import": "supportsImageImport",
    "disk-export": "supportsDiskExport",
    "disk-import": "supportsDiskImport",
}


class BadCaseSpec(Terminal):
    """A file that holds no conformance spec."""


class CaseCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comparison of a field with a value."""

    path: str
    operator: Operator = "eq"
    value: Any = None


class CaseWait(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state to wait for."""

    condition: WaitCondition
    timeout: str = ""


class CaseStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step. One without a resource is about the resource of the step before."""

    name: str
    type: StepType
    timeout: str = ""
    resource: Data | None = None
    waitFor: CaseWait | None = None
    validate: tuple[CaseCheck, ...] = ()

    @property
    def seconds(self) -> float:
        """The time that the step may take."""
        own = self.waitFor.timeout if self.waitFor is not None else ""
        return _seconds(own or self.timeout or "2m")


class LifecycleCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    steps: tuple[CaseStep, ...]
    description: str = ""
    requiredCapabilities: tuple[str, ...] = ()
    timeout: str = ""
    labels: dict[str, str] = {}
    cleanup: tuple[CaseStep, ...] = ()

    @property
    def seconds(self) -> float:
        """The time that all steps together may take."""
        return _seconds(self.timeout or "30m")


def read(text: str, values: Mapping[str, str], file: str = "the spec") -> tuple[LifecycleCase, ...]:
    """Read a spec, with values in the place of ${NAME}; raise `BadCaseSpec`."""
    try:
        filled = string.Template(text).substitute(values)
    except KeyError as error:
        name = str(error.args[0])
        raise BadCaseSpec(f"{file} has ${{{name}}}, which has no value", fix=f"add --set {name}=VALUE") from None
    except ValueError as error:
        raise BadCaseSpec(f"{file} has a $ that begins no ${{NAME}}", why=str(error), fix="write $$ for a dollar sign") from None
    try:
        found = msgspec.convert(yaml.safe_load(filled) or [], tuple[LifecycleCase, ...])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise BadCaseSpec(f"{file} cannot be read", why=" ".join(str(error).split())) from None
    for problem in _problems(found):
        raise BadCaseSpec(f"{file} has a mistake", why=problem)
    return found


def _problems(cases: tuple[LifecycleCase, ...]) -> Iterator[str]:
    names = [each.name for each in cases]
    yield from (f"the name {each} stands twice" for each in names if names.count(each) > 1)
    for case in cases:
        unknown = [each for each in case.requiredCapabilities if each not in CAPABILITIES]
        if unknown:
            yield f"case {case.name} requires {unknown[0]}, which is none of {', '.join(CAPABILITIES)}"
        if not case.steps:
            yield f"case {case.name} has no steps"
        about: Data | None = None
        for step in (*case.steps, *case.cleanup):
            about = step.resource or about
            yield from (f"case {case.name}, step {step.name}: {each}" for each in _step_problems(step, about))


def _step_problems(step: CaseStep, about: Data | None) -> Iterator[str]:
    if step.type in ("create", "update", "delete") and step.resource is None:
        yield f"a step of type {step.type} needs a resource"
    elif about is None:
        yield "there is no resource that it is about"
    elif not (about.get("apiVersion") and about.get("kind") and (about.get("metadata") or {}).get("name")):
        yield "its resource needs apiVersion, kind and metadata.name"
    if step.type == "wait" and step.waitFor is None:
        yield "a step of type wait needs waitFor"
    if step.type == "validate" and not step.validate:
        yield "a step of type validate needs validate"
    for text in (step.timeout, step.waitFor.timeout if step.waitFor is not None else ""):
        if text and not duration.is_duration(text):
            yield f"{text} is no duration such as 30s"


def _seconds(text: str) -> float:
    return duration.parse(text) / duration.SECOND
