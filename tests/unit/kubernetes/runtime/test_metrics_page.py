"""The page for authors of controllers names every metric there is, and no other."""

import re
from pathlib import Path

from paddock.base.metrics import MetricsRegistry

ROOT = Path(__file__).parents[4]
_MADE = re.compile(r"\.(?:counter|gauge|histogram)\(\s*\"(paddock_[a-z_]+)\"")


def test_the_page_and_the_code_name_the_same_metrics() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/paddock/kubernetes/runtime").glob("*.py")))
    page = (ROOT / "docs/contribute/controllers.md").read_text(encoding="utf-8")
    assert set(_MADE.findall(code)) == set(re.findall(r"`(paddock_[a-z_]+)`", page))
    assert MetricsRegistry().names() == ()
