"""Recordings show what a terminal showed, and every scene names commands that exist."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paddock.app import main as program
from paddock.cli import main as offline
from tools.recordings import svg
from tools.recordings.player import Frame, Player, Recording, Run, SceneFailed
from tools.recordings.scenes import SCENES, Scene

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}


def test_the_screen_is_kept_with_its_colours(tmp_path: Path) -> None:
    played = Player(20, 4, _ENVIRONMENT, tmp_path).play([r"printf '\033[1;31mred\033[0m\nrow'; echo"])
    assert played.frames[0].rows[0] == (Run(0, "$", "default", False),)
    shown = [run for row in played.frames[-1].rows for run in row]
    assert Run(0, "red", "red", True) in shown
    assert Run(0, "row", "default", False) in shown
    assert [each.seconds for each in played.frames] == sorted(each.seconds for each in played.frames)


def test_a_program_sees_a_terminal_of_that_size(tmp_path: Path) -> None:
    played = Player(33, 7, _ENVIRONMENT, tmp_path).play(["stty size"])
    assert any(run.text == "7 33" for row in played.frames[-1].rows for run in row)


def test_a_command_that_fails_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SceneFailed, match="ended with 3"):
        Player(20, 4, _ENVIRONMENT, tmp_path).play(["exit 3"])


def test_a_long_wait_is_cut_and_the_caption_says_how_long_it_was() -> None:
    rows = ((Run(0, "<&>", "brightgreen", True),), ())
    recording = Recording(10, 2, (Frame(0, ()), Frame(60, rows), Frame(60.5, ())), 61)
    assert svg.pauses(recording.frames)[:2] == [svg.LONGEST_SECONDS, 0.5]
    picture = ElementTree.fromstring(svg.draw(recording, "a title"))
    texts = ["".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["a title (61 s; waits are cut)", "<&>"]


def test_a_row_that_stays_is_drawn_once() -> None:
    row = (Run(0, "same", "default", False),)
    frames = tuple(Frame(number, (row, (Run(0, str(number), "default", False),))) for number in range(3))
    assert svg.draw(Recording(10, 2, frames, 3), "t").count("same") == 1


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_commands_of_scenes_exist_and_their_pictures_are_there(scene: Scene) -> None:
    known = set(offline.COMMANDS) | set(program.COMMANDS)
    assert {name for command in scene.commands for name in re.findall(r"\bpaddock ([a-z]\S*)", command)} - known == set()
    root = Path(__file__).parents[4]
    assert (root / "docs" / "recordings" / f"{scene.name}.svg").exists()
