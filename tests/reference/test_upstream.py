"""KubeVirt's sources: no case of the files that are listed in `tests/upstream` is missing there, and none is listed that is not in them."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.reference import ginkgo
from tools import upstream

INVENTORY = upstream.read(Path(__file__).parents[1] / "upstream")


@cache
def sources() -> Path:
    """KubeVirt's module, unpacked."""
    module = f"kubevirt.io/kubevirt@{INVENTORY.version}"
    if shutil.which("go") is None:
        pytest.skip("needs go: it fetches KubeVirt's sources")
    said = subprocess.run(["go", "mod", "download", "-json", module], cwd="/", capture_output=True, text=True, check=True, timeout=600)
    return Path(json.loads(said.stdout)["Dir"])


@pytest.mark.parametrize("file", INVENTORY.files())
def test_every_case_of_a_file_is_listed(file: str) -> None:
    assert [each.name for each in INVENTORY.files()[file]] == ginkgo.names((sources() / file).read_text("utf-8"))


def test_names_are_read_as_they_are_written() -> None:
    source = """
    var _ = Describe("[sig]All", func() {
        Context("[rfe_id:1]with " + word + ` disks`, func() { // It("no")
            It("[test_id:7]should (start)", decorators.X, func() { run("It(") })
            DescribeTable("should grow", func(n int) {}, Entry("by \\"one\\"", 1), Entry("by two", 2))
        })
        It("again", func() {}); It("again", func() {})
    })"""
    assert ginkgo.names(source) == [
        "with <word> disks / [test_id:7]should (start)",
        'with <word> disks / should grow / by \\"one\\"',
        "with <word> disks / should grow / by two",
        "again",
        "again (2)",
    ]
