"""`make freeze`: what counts as a text, and how a difference is shown."""

from pathlib import Path

from tools.freeze import differences, texts

MODULE = '''"""A docstring."""
from paddock.base import errors
LOADED = "paddock.base.errors:Terminal"
def refuse(name: str) -> str:
    """Another one."""
    return f"no {name!r} here" + "; look elsewhere"
'''


def test_the_texts_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(MODULE)
    assert texts([tmp_path / "one.py"]) == {"no {} here", "; look elsewhere"}


def test_a_changed_line_is_shown_with_the_name_of_its_part() -> None:
    assert list(differences({"help up": "a\nb\n"}, {"help up": "a\nc\n"})) == [
        "--- base: help up",
        "+++ tree: help up",
        "@@ -2 +2 @@",
        "-b",
        "+c",
    ]


def test_a_part_that_one_side_lacks_differs() -> None:
    assert "-gone" in list(differences({"man": "gone"}, {}))
    assert "+new" in list(differences({}, {"man": "new"}))


def test_a_long_difference_is_cut_with_its_length() -> None:
    shown = list(differences({"page": ""}, {"page": "line\n" * 100}))
    assert shown[-1] == "... and 63 lines more"


def test_equal_parts_say_nothing() -> None:
    assert list(differences({"page": "same"}, {"page": "same"})) == []
