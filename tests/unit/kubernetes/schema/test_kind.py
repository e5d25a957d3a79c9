"""Kinds and rules: names that follow from others, and texts that are told once."""

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.kind import Kind, Version, rule, transition
from tests.unit.kubernetes.schema.sample import SAMPLE, Sample, grows, runs_alone


def test_objects_are_written_in_the_storage_version() -> None:
    kind = Kind(
        group="example.com", kind="Thing", plural="things", cls=Sample, dialect="x", versions=(Version("v2", storage=False), Version("v1"))
    )
    assert kind.storage_version == "v1"
    assert kind.api_version == "example.com/v1"


def test_the_core_group_has_no_name() -> None:
    assert Kind(group="", kind="Thing", plural="things", cls=Resource, dialect="core").api_version == "v1"


def test_a_kind_is_described_by_its_class() -> None:
    assert SAMPLE.text == "A thing that shows everything a declaration can say."


def test_a_rule_is_described_by_its_function() -> None:
    assert (runs_alone.id, runs_alone.text) == ("sample/runs-alone", "A running one is alone, and its root disk is fast.")
    assert (grows.id, grows.text) == ("sample/grows", "There are never fewer than before.")
    assert [cel.at for cel in runs_alone.cel] == ["spec", "spec.disks[]"]


def test_a_long_text_becomes_one_line() -> None:
    @rule("x/long")
    def long(thing: object, settings: object) -> tuple[()]:
        """One line
        and another.
        """
        return ()

    @transition("x/silent")
    def silent(old: object, new: object, settings: object) -> tuple[()]:
        return ()

    assert (long.text, silent.text) == ("One line and another.", "")
