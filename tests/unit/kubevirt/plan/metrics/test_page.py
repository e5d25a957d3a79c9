"""The page, and the reader that tests hold it against."""

import pytest

from paddock.app.metrics.series import families, usage
from paddock.app.metrics.series.page import MetricsPage, labels, prefixed, sample
from paddock.base.metrics import MetricFamily
from paddock.engine.machine.guest import GuestFilesystem
from tests.kit.prometheus import read

HEAD = "# HELP a_total x\n# TYPE a_total counter\n"


@pytest.mark.parametrize(
    "text",
    [
        "a_total 1\n",
        HEAD + "a_total 1",
        HEAD + HEAD,
        HEAD + "b_total 1\n",
        HEAD + "a_total 1\na_total 2\n",
        HEAD + 'a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n',
        HEAD + 'a_total{x="1",x="2"} 1\n',
        HEAD + 'a_total{x="1",} 1\n',
        HEAD + 'a_total{x="a"b"} 1\n',
        HEAD + 'a_total{x="a\\q"} 1\n',
        HEAD + 'a_total{a.b="1"} 1\n',
        HEAD + "a_total one\n",
        HEAD + "\na_total 1\n",
        "# HELP a x\n# TYPE a counter\na 1\n",
        "# TYPE a_total counter\n# HELP a_total x\na_total 1\n",
        "# HELP a_total x\na_total 1\n",
        '# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
    ],
)
def test_the_reader_is_strict(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(text)


def test_every_family_is_there_once_and_texts_are_escaped() -> None:
    found = read(MetricsPage(families.ALL).text())
    assert len(found) == len(families.ALL)
    page = MetricsPage((MetricFamily("odd", "gauge", "a\nb\\c"),))
    page.add([sample("odd", labels(x='a"b\\c\nd'), 0.5), sample("odd", "", float("nan"))])
    assert read(page.text())["odd"].values(x='a"b\\c\nd') == [0.5]


def test_labels_that_become_the_same_are_one() -> None:
    assert prefixed("label_", {"a-b": "2", "a.b": "3", "a/b": '"'}) == ',label_a_b="2"'
    assert prefixed("label_", None) == ""


def test_a_guest_cannot_name_a_file_system_twice() -> None:
    page = MetricsPage(families.ALL)
    page.add(
        usage.filesystems(
            labels(name="web"),
            [GuestFilesystem("a", "/", "ext4", 1, 2), GuestFilesystem("a", "/", "ext4", 3, 4), GuestFilesystem("b", "/x", "proc")],
        )
    )
    assert read(page.text())["kubevirt_vmi_filesystem_used_bytes"].values() == [1]
