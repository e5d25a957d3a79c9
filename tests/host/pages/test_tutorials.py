"""The tutorials, and pages for administrators, followed word for word by a reader with a fresh home, on a network of their own, with
real guests.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import places
from tests.kit.pages import ROOT, Reader

DOCS = ROOT / "docs"
TUTORIALS = ("five-dialects.md", "from-other-tools.md", "lab.md", "quickstart.md")
DAILY = ("use/run.md", "use/daily.md", "use/changes.md")
WITH_KUBECTL = [pytest.param(f"run/{name}", marks=pytest.mark.needs("kubectl")) for name in ("expose.md", "metrics.md", "server.md")]
PAGES = (
    *(f"start/{name}" for name in TUTORIALS),
    *DAILY,
    "manifests/gitops.md",
    "run/airgap.md",
    "run/backup.md",
    *WITH_KUBECTL,
    "run/production.md",
    "run/tenants.md",
)
pytestmark = [pytest.mark.needs("qemu", "netns", "tun", "nft"), pytest.mark.long]


@pytest.fixture
def reader(work: Path, netns: str) -> Iterator[Reader]:
    """A reader whose servers and machines are gone afterwards, wherever the page ends."""
    home = work / "home"
    home.mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PADDOCK_DIR": str(work / "server"),
        # the only name of a host that its own network resolves
        "SERVER_NAME": "localhost",
        # Images that were built on this host are built once for all tests.
        "XDG_CACHE_HOME": str(places.cache().parents[1]),
    }
    try:
        yield Reader(home, environment, within=("ip", "netns", "exec", netns))
    finally:
        command = ["ip", "netns", "exec", netns, "paddock", "down", "--purge", "--delete-data", "--yes"]
        subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=False)


@pytest.mark.needs("kubectl")
def test_the_commands_of_the_readme_print_what_it_says(reader: Reader) -> None:
    reader.follow(ROOT / "README.md")
    assert reader.printed


@pytest.mark.parametrize("page", PAGES)
def test_a_reader_gets_to_the_end(page: str, reader: Reader) -> None:
    reader.follow(DOCS / page)
    assert reader.printed
    assert not Path(reader.environment["PADDOCK_DIR"]).exists()
