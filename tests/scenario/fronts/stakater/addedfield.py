"""Run by test_added_field, with a copy of the program whose machine has the field `tint`."""

from tests.coroutines import played
from tests.scenario.fronts.stakater.stage import Stage, front


@played
async def test_an_event_names_the_field(stage: Stage, /) -> None:
    await stage.make(front(cpu={"cores": 2, "tint": "red"}))
    await stage.available()
    (note,) = [note for reason, note in await stage.notes() if reason == "FieldsIgnored"]
    assert "spec.parameters.cpu.tint" in note and "red" not in note
