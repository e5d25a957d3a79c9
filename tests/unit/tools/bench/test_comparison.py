"""The server's table: one run, several, and none of the reference."""

from tools.bench.comparison import Run, rows


def _line(runs: list[Run], text: str) -> tuple[str, ...]:
    return next(row for row in rows(runs) if row[0] == text)


def test_one_run_is_shown_as_it_is() -> None:
    line = _line([Run({"create.16.cpu": 0.5}, {"create.16.cpu": 9.0})], "CPU of a create on 16")
    assert line == ("CPU of a create on 16", "0.5 ms", "9 ms", "1/18.0", "<= 1/15", "met")


def test_several_runs_show_the_middle_and_the_spread() -> None:
    runs = [Run({"get.rate": ours}, {"get.rate": 1000.0}) for ours in (30000.0, 10000.0, 12000.0)]
    line = _line(runs, "gets on 16 connections")
    assert line[1:] == ("12,000 /s (10,000 to 30,000)", "1,000 /s (1,000 to 1,000)", "12.0x (10.0x to 30.0x)", ">= 20x", "met in 1 of 3")


def test_without_the_reference_only_what_stands_alone_is_judged() -> None:
    runs = [Run({"get.cpu": 0.1, "resident.empty": 70.0}, {})]
    assert _line(runs, "CPU of a get")[2:] == ("", "", "<= 1/30", "")
    assert _line(runs, "resident, empty")[-1] == "MISSED"
