"""What broke first while a server grew."""

from tools.bench.maxima.stages import Limit, Stage, first_break, growth, misses, table

LIMITS = {"list": Limit("s", 10.0, 0.8), "memory": Limit("MB", 1000.0)}


def test_nothing_breaks_within_the_limits() -> None:
    assert first_break([Stage(10, {"list": 0.1, "memory": 50.0}), Stage(100, {"list": 10.0, "memory": 1000.0})], LIMITS) is None


def test_the_smallest_size_counts() -> None:
    broken = first_break([Stage(10, {"list": 11.0}), Stage(100, {"memory": 9000.0})], LIMITS)
    assert str(broken) == "list broke first, at 10 machines: 11 s, limit 10 s"


def test_of_several_the_one_furthest_beyond_its_limit_counts() -> None:
    broken = first_break([Stage(10, {"list": 11.0, "memory": 3000.0})], LIMITS)
    assert broken is not None
    assert broken.trial == "memory"


def test_what_does_not_work_breaks_before_what_is_slow() -> None:
    broken = first_break([Stage(10, {"list": 11.0}, {"memory": "the server ended"})], LIMITS)
    assert str(broken) == "memory broke first, at 10 machines: the server ended"


def test_goals_that_are_not_met_are_named() -> None:
    assert misses(Stage(10, {"list": 0.9, "memory": 5000.0}), LIMITS) == ["list: 0.9 s, goal 0.8 s"]
    assert misses(Stage(10, {"list": 0.8}), LIMITS) == []


def test_growth_is_the_last_size_over_the_first() -> None:
    assert growth([Stage(10, {"list": 0.1}), Stage(100), Stage(1000, {"list": 0.4})], "list") == 4.0
    assert growth([Stage(10, {"list": 0.1})], "list") is None


def test_the_table_has_a_row_for_each_trial_and_a_column_for_each_size() -> None:
    shown = table([Stage(1000, {"list": 0.5}), Stage(20_000, {"list": 1.0}, {"memory": "the server ended"})], LIMITS)
    assert [line.split() for line in shown.splitlines()] == [
        ["unit", "1,000", "20,000", "growth"],
        ["list", "s", "0.5", "1", "2.00x"],
        ["memory", "MB", "failed"],
    ]
