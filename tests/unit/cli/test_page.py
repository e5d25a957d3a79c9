"""The page of the command line, followed word for word. It speaks of manifests that it does not show: they lie in `page/`."""

import os
import sys
from pathlib import Path

from tests.kit.pages import ROOT, Reader, blocks

PAGE = ROOT / "docs" / "manifests" / "cli.md"
MANIFESTS = Path(__file__).parent / "page"


def test_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    # Findings and differences are what the page shows, so the codes for them are no failures.
    reader = Reader(folder, {"PATH": path}, codes=(1,))
    web = (MANIFESTS / "web.yaml").read_text()
    (folder / "web.yaml").write_text((MANIFESTS / "mistakes.yaml").read_text())
    (folder / "old.yaml").write_text(web)
    (folder / "new.yaml").write_text(web.replace("size: 10Gi", "size: 20Gi"))
    for block in blocks(PAGE):
        reader.do(block)
        if any("validate" in command for command in block.commands):
            # The reader mends the mistakes.
            (folder / "web.yaml").write_text(web)
    assert "kind: Machine" in (folder / "machine.yaml").read_text()
    assert len(reader.printed) >= 4
