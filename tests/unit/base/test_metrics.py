"""Metrics as Prometheus reads them."""

import pytest

from paddock.base.metrics import MetricsRegistry


def test_the_text_of_all_sorts() -> None:
    metrics = MetricsRegistry()
    requests = metrics.counter("requests_total", "Requests,\nall of them.", ("code", "path"))
    requests.inc("200", 'a"b\\c\nd')
    requests.inc("200", 'a"b\\c\nd', by=2)
    requests.inc("100", "x")
    metrics.gauge("machines_total", "Gauges may be named so.").set(2.5)
    metrics.gauge("depth", "How deep.", ("queue",)).ask(lambda: 7, "main")
    took = metrics.histogram("took_seconds", "How long.", bounds=(0.1, 1))
    for seconds in (0.1, 0.5, 3):
        took.observe(seconds)
    assert metrics.text().splitlines() == [
        "# HELP depth How deep.",
        "# TYPE depth gauge",
        'depth{queue="main"} 7',
        "# HELP machines_total Gauges may be named so.",
        "# TYPE machines_total gauge",
        "machines_total 2.5",
        "# HELP requests_total Requests,\\nall of them.",
        "# TYPE requests_total counter",
        'requests_total{code="100",path="x"} 1',
        'requests_total{code="200",path="a\\"b\\\\c\\nd"} 3',
        "# HELP took_seconds How long.",
        "# TYPE took_seconds histogram",
        'took_seconds_bucket{le="0.1"} 1',
        'took_seconds_bucket{le="1"} 2',
        'took_seconds_bucket{le="+Inf"} 3',
        "took_seconds_sum 3.6",
        "took_seconds_count 3",
    ]
    assert took.count() == 3


def test_a_name_is_one_metric() -> None:
    metrics = MetricsRegistry()
    first = metrics.counter("a_total", "A.", ("x",))
    assert metrics.counter("a_total", "A.", ("x",)) is first
    with pytest.raises(ValueError, match="a_total is a counter"):
        metrics.counter("a_total", "A.")
    with pytest.raises(ValueError, match="a_total is a counter"):
        metrics.gauge("a_total", "A.", ("x",))
    with pytest.raises(ValueError, match="labels"):
        first.inc()


def test_series_of_what_is_gone_go() -> None:
    metrics = MetricsRegistry()
    phases = metrics.gauge("phases", "Phases.", ("phase",))
    found: list[dict[tuple[str, ...], float]] = [{("Running",): 2.0}, {("Stopped",): 1.0}]
    metrics.before(lambda: phases.replace(found.pop(0)))
    assert 'phases{phase="Running"} 2' in metrics.text()
    assert "Running" not in metrics.text()
