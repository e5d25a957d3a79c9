"""The sentences about the end of a run are read as they were written."""

from collections.abc import Callable

import pytest

from paddock.base import reasons
from paddock.kubevirt.plan.instance import ends


@pytest.mark.parametrize("write", [ends.ended, ends.crashed])
@pytest.mark.parametrize("word", sorted(ends.CODES))
def test_the_code_of_an_end(write: Callable[[str, str], str], word: str) -> None:
    sentence = write(word, "qemu: a: b\nqemu: c")
    assert ends.code(sentence) == ends.CODES[word]
    assert ends.detail(sentence) == "qemu: a: b\nqemu: c"


def test_a_killed_qemu_is_told_from_one_that_crashed() -> None:
    assert ends.code(ends.ended("crashed", f"{reasons.ended_by('SIGKILL')}\nqemu: x")) == reasons.QEMU_KILLED
    assert ends.code(ends.ended("crashed", reasons.ended_by("SIGSEGV"))) == reasons.QEMU_CRASHED


@pytest.mark.parametrize("sentence", ["", "panicked: x", "crashed", "The VirtualMachineInstance crashed.", "the machine has ended"])
def test_other_sentences_have_no_code(sentence: str) -> None:
    assert ends.code(sentence) == ""
    assert ends.detail(sentence) == sentence


def test_an_end_without_a_log() -> None:
    assert ends.code(ends.ended("watchdog", "")) == reasons.GUEST_WATCHDOG
    assert ends.crashed("watchdog", "") == "The VirtualMachineInstance crashed."
