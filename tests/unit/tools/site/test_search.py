"""The words that people search for are on the page that answers them, and those pages come first."""

import re
from pathlib import Path

import pytest

from tests.kit.pages import GUIDES
from tools.site import staging

ROOT = Path(__file__).parents[4]
# What somebody types, and the page that has the answer.
QUESTIONS = {
    "install": "start/install.md",
    "uninstall": "run/upgrade.md",
    "remove": "run/upgrade.md",
    "update": "run/upgrade.md",
    "login": "use/access.md",
    "password": "use/access.md",
    "ssh key": "use/access.md",
    "copy file": "use/access.md",
    "port forward": "use/access.md",
    "expose": "run/expose.md",
    "firewall": "run/expose.md",
    "static ip": "use/networks.md",
    "bridge": "use/networks.md",
    "dns": "use/networks.md",
    "ipv6": "use/networks.md",
    "resize disk": "use/changes.md",
    "add memory": "use/changes.md",
    "snapshot": "use/snapshots.md",
    "clone": "use/snapshots.md",
    "backup": "run/backup.md",
    "restore": "run/backup.md",
    "delete": "use/daily.md",
    "rename": "about/faq.md",
    "windows": "about/faq.md",
    "gpu": "about/faq.md",
    "wsl": "about/faq.md",
    "macos": "about/faq.md",
    "docker": "about/faq.md",
    "terraform": "manifests/opentofu.md",
    "vagrant": "start/from-other-tools.md",
    "proxy": "run/airgap.md",
    "offline": "run/airgap.md",
    "nested virtualization": "run/hosts.md",
    "kvm": "run/hosts.md",
    "slow": "run/hosts.md",
    "certificate": "run/server.md",
    "oidc": "run/expose.md",
    "log": "run/production.md",
    "monitoring": "run/production.md",
    "prometheus": "run/metrics.md",
    "quota": "run/admission.md",
    "cloud-init": "use/run.md",
    "screenshot": "use/access.md",
    "vnc": "use/access.md",
    "iso": "use/images.md",
    "qcow2": "use/images.md",
    "autostart": "start/install.md",
    "migrate": "cluster/move.md",
}


@pytest.mark.parametrize("words", QUESTIONS)
def test_the_page_has_the_words_that_people_search_for(words: str) -> None:
    text = (ROOT / "docs" / QUESTIONS[words]).read_text(encoding="utf-8").lower()
    # The search finds words by their beginning.
    assert [word for word in words.split() if not re.search(rf"\b{re.escape(word)}", text)] == []


def test_pages_for_users_come_before_the_reference(tmp_path: Path) -> None:
    staging.stage(ROOT, tmp_path)
    heads = {path: path.read_text(encoding="utf-8").partition("\n# ")[0] for path in tmp_path.glob("docs/*/*.md")}
    boosted = {path.parent.name for path, head in heads.items() if "boost:" in head}
    assert boosted <= set(GUIDES)
    assert {"start", "use", "run"} <= boosted
