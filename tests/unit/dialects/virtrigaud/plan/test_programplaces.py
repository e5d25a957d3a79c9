"""What a Provider says and nothing acts on where its program runs is named by its condition Unsupported."""

from typing import Any

import pytest
from msgspec import structs

from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import health, programplaces
from paddock.dialects.virtrigaud.plan.conditions import UNSUPPORTED, find
from paddock.dialects.virtrigaud.plan.health import ProviderFacts, ProviderRuntimeFacts
from paddock.dialects.virtrigaud.plan.programplaces import ProgramPlace
from paddock.kubernetes import admission
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.kubevirt.controllers.rigaudharness import provider

RUNTIME = {"image": "a/b:1", "replicas": 3, "logLevel": "debug", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}
SPEC: dict[str, Any] = {"runtime": RUNTIME, "rateLimit": {"qps": 3}, "healthCheck": {"interval": "1m"}}
PODS_ALONE = ("spec.runtime.replicas", "spec.runtime.resources.requests")


def made(**spec: Any) -> Provider:
    found = admission.admit(provider(**spec), AdmissionSettings()).value
    assert isinstance(found, Provider)
    return found


@pytest.mark.spec("virtrigaud", 172)
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (ProgramPlace.PODS, ()),
        (ProgramPlace.CHILD, PODS_ALONE),
        (ProgramPlace.SERVED, ("spec.runtime.replicas", "spec.runtime.resources", "spec.runtime.logLevel")),
        (ProgramPlace.OWN, ("spec.rateLimit", "spec.runtime.replicas", "spec.runtime.resources", "spec.runtime.logLevel")),
    ],
)
def test_fields_that_nothing_acts_on(place: ProgramPlace, expected: tuple[str, ...]) -> None:
    assert programplaces.unused(made(**SPEC), place) == expected
    status = health.status(made(**SPEC), ProviderFacts(ProviderRuntimeFacts(place=place)), "2026-01-01T00:00:00Z")
    told = find(status.conditions, UNSUPPORTED)
    assert (told is not None) is bool(expected)
    assert told is None or all(each in told.message for each in (*expected, str(place)))


@pytest.mark.spec("virtrigaud", 172)
def test_the_condition_goes_with_its_cause() -> None:
    facts = ProviderFacts(ProviderRuntimeFacts(place=ProgramPlace.CHILD))
    told = health.status(made(**SPEC), facts, "2026-01-01T00:00:00Z")
    assert find(told.conditions, UNSUPPORTED) is not None
    after = structs.replace(made(), status=told)
    assert find(health.status(after, facts, "2026-01-01T00:00:01Z").conditions, UNSUPPORTED) is None
