"""The part of a page that a client asks for."""

import pytest

from paddock.app.metrics.wiring import selected

PAGE = """# HELP a_total One.
# TYPE a_total counter
a_total{x="1"} 2
# HELP b_seconds Two.
# TYPE b_seconds histogram
b_seconds_bucket{le="+Inf"} 1
b_seconds_sum 3
b_seconds_count 1
# HELP a_total_more Three.
# TYPE a_total_more gauge
a_total_more 4
"""


@pytest.mark.parametrize(
    ("names", "lines"),
    [(["a_total"], 3), (["b_seconds"], 5), (["b_seconds_bucket"], 5), (["a_total", "a_total_more"], 6), (["absent"], 0)],
)
def test_selected(names: list[str], lines: int) -> None:
    assert len(selected(PAGE, names).splitlines()) == lines
