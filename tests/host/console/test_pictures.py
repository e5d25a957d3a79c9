"""A picture of every page in both themes, below `build/console/pages`: `make screenshots` takes them."""

import pytest

from tests.host.console.browser import Browser
from tests.host.console.conftest import PICTURES, TABS, TOPICS, SignIn, state, tab

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_has_its_picture(console: SignIn, browser: Browser, disk_machine: str, theme: str) -> None:
    folder = PICTURES / "pages"
    page = console(color_scheme=theme)
    page.apply(disk_machine)
    page.see("role=link[name='web']")
    page.picture(folder / f"machines-{theme}.png")
    page.open_machine("web")
    page.see(state("Running"))
    for name in TABS:
        page.click(tab(name))
        page.see("role=tabpanel")
        page.picture(folder / f"machine-{name.lower()}-{theme}.png")
    base = page.address()
    for topic in TOPICS:
        page.goto(f"{base}#/{topic}")
        page.see("main h1")
        page.picture(folder / f"{topic}-{theme}.png")
    assert page.evaluate("() => document.documentElement.dataset.theme") == theme
    assert browser.wrong() == []
