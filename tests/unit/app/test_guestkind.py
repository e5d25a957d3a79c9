"""The kind of guests that a directory was made for."""

from pathlib import Path

import pytest

from paddock.app.directory import guestkind
from paddock.app.directory.guestkind import OtherGuests


@pytest.mark.spec("kubevirt", 220)
def test_a_directory_keeps_its_kind(tmp_path: Path) -> None:
    new, real, simulated = tmp_path / "new", tmp_path / "real", tmp_path / "simulated"
    for each in (new, real / "engine", simulated):
        each.mkdir(parents=True)
    assert guestkind.kind_of(tmp_path / "missing") is None and guestkind.kind_of(new) is None
    guestkind.note(simulated, "simulated")
    (simulated / "engine").mkdir()
    assert guestkind.kind_of(simulated) == "simulated" and guestkind.kind_of(real) == "real"
    guestkind.note(simulated, "simulated")
    guestkind.note(real, "real")
    assert not (real / guestkind.NAME).exists()
    with pytest.raises(OtherGuests, match="made for simulated guests") as caught:
        guestkind.check(simulated, "real")
    assert "start it with --guests simulated" in caught.value.fix
    with pytest.raises(OtherGuests, match="made for real guests"):
        guestkind.note(real, "simulated")
    assert guestkind.kind_of(real) == "real"


def test_a_mark_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / guestkind.NAME).write_text("{")
    with pytest.raises(OtherGuests, match="cannot read"):
        guestkind.check(tmp_path, "simulated")
