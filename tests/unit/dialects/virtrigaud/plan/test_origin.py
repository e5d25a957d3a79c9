"""The origin of a clone is read back from the condition that holds it."""

import pytest

from paddock.dialects.virtrigaud.kinds.shared import StatusCondition
from paddock.dialects.virtrigaud.plan.clones import origin
from paddock.dialects.virtrigaud.plan.clones.origin import CloneOrigin


@pytest.mark.parametrize(
    "given",
    [
        CloneOrigin("team", "lab", "team", "twin", "vm-1", generation=3),
        CloneOrigin("team", "lab", "rest", "twin", "a strange id, as a clone of the machine x\n", linked=True, generation=12),
        CloneOrigin("team", "lab", "team", "twin"),
    ],
)
def test_it_is_read_back(given: CloneOrigin) -> None:
    condition = StatusCondition(type=origin.ORIGIN, status="True", reason="Cloning", message=str(given))
    assert origin.of([condition]) == given


@pytest.mark.parametrize("text", ["", "VirtualMachine a", "VirtualMachine a/b at Provider c for generation 1"])
def test_another_text_is_none(text: str) -> None:
    assert origin.of([StatusCondition(type=origin.ORIGIN, status="True", reason="Cloning", message=text)]) is None
    assert origin.of(None) is None
