"""The page of differences between the two homes, and the comparison that holds it against what is seen."""

import pytest

from tests.reference.cluster import homes
from tests.reference.cluster.homes import Difference
from tools.referencepages.homes import KnownDifference, page, reasons

KNOWN = KnownDifference(("stakater",), ("running",), "pod/* status.list[a].x", "", "on *")


def found(dialect: str = "stakater", step: str = "running", line: str = "pod/web status.list[a].x", cluster: str = "on node") -> Difference:
    return Difference(dialect, step, line, "", cluster)


@pytest.mark.parametrize(
    ("seen", "known"),
    [
        pytest.param(found(), True, id="the same"),
        pytest.param(found(dialect="vitistack"), False, id="of another dialect"),
        pytest.param(found(step="stopped"), False, id="at another step"),
        pytest.param(found(line="pod/web status.lista.x"), False, id="brackets are no set of letters"),
        pytest.param(found(cluster="off"), False, id="another text"),
    ],
)
def test_what_is_explained(seen: Difference, known: bool) -> None:
    assert homes.covers(KNOWN, seen) is known
    assert (homes.unexplained([seen], [KNOWN]) == "") is known
    assert (homes.stale("stakater", [seen], [KNOWN]) == []) is known


def test_the_page_has_every_difference_with_its_reason() -> None:
    # The last section is about disks that go wrong, which the comparison does not play.
    sections = page().split("\n## ")[1:-1]
    assert len(sections) == len(reasons()) > 5
    for section, reason in zip(sections, reasons(), strict=True):
        assert section.startswith(f"{reason.title}\n") and reason.why in " ".join(section.split("\n"))
        assert section.count("\n| `") == len(reason.difference)
        assert all(f"\n| `{each.line}` |" in section for each in reason.difference)
