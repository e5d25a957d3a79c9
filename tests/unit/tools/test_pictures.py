"""The pictures of the documents: complete, well formed, and drawn from what the project says of itself."""

import re
from xml.etree import ElementTree

import pytest

from paddock.engine.machine.requests import STATES
from tools import diagrams, pictures

PICTURES = pictures.pictures()
_SVG = "{http://www.w3.org/2000/svg}"


def words_of(name: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(PICTURES[name]).iter(f"{_SVG}text")]


def test_every_layer_of_the_contract_is_drawn() -> None:
    rows = pictures.rows(pictures.contracts())
    names = [name.strip("()") for row in rows for name in row]
    assert [each for each in words_of("layers.svg") if each in names] == names
    assert set(names) == set(pictures.ROLES)


def test_every_state_of_a_machine_is_drawn() -> None:
    assert [each for each in words_of("states.svg") if each in STATES] == list(STATES)


def test_the_places_on_the_way_of_a_manifest_exist() -> None:
    places = [place for each in words_of("manifest.svg") for place in each.split(", ") if re.fullmatch(r"[a-z]+(/[a-z]+)?", place)]
    places = [place for place in places if "/" in place or place in pictures.ROLES]
    assert len(places) > 10
    assert [place for place in places if not (pictures.ROOT / "src" / "paddock" / place).is_dir()] == []


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_its_picture(name: str) -> None:
    root = ElementTree.fromstring(PICTURES[name])
    width = float(root.attrib["width"])
    for each in root.iter(f"{_SVG}text"):
        # DejaVu Sans is wide: its average letter has 0.62 of the size.
        wide = len(each.text or "") * float(each.attrib["font-size"]) * 0.62
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[each.attrib["text-anchor"]]
        left = float(each.attrib["x"]) - wide * share
        assert 0 <= left <= left + wide <= width, each.text


def test_titles_fit_into_their_boxes() -> None:
    for name in diagrams.pictures():
        root = ElementTree.fromstring(PICTURES[name])
        boxes = [
            [float(each.attrib[key]) for key in ("x", "y", "width", "height")] for each in root.iter(f"{_SVG}rect") if "rx" in each.attrib
        ]
        for each in root.iter(f"{_SVG}text"):
            x, y = float(each.attrib["x"]), float(each.attrib["y"])
            around = [box for box in boxes if box[0] < x < box[0] + box[2] and box[1] < y < box[1] + box[3]]
            if around and each.attrib["text-anchor"] == "middle":
                assert len(each.text or "") * float(each.attrib["font-size"]) * 0.56 <= min(box[2] for box in around), (name, each.text)
