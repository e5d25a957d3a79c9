"""The pictures of docs/use/console.md: from the empty page to a shell, and from a broken machine to its cause and its cure.

`make screenshots` takes them anew. Other runs go the same way and leave the committed pictures alone.
"""

import os
from pathlib import Path

import pytest
import yaml

from paddock.base.images.build import tiny
from tests.host.console import browser as chromium
from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import PICTURES, button, state, tab
from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

COMMITTED = chromium.ROOT / "docs" / "recordings"
LARGEST_BYTES = 60_000


def taken(page: Page, name: str) -> None:
    """Take a picture: into the documents if it is to be committed."""
    folder = COMMITTED if os.environ.get("SCREENSHOTS") else PICTURES / "story"
    path: Path = folder / f"console-{name}.webp"
    page.small_picture(path)
    assert path.stat().st_size < LARGEST_BYTES, path


@pytest.fixture
def page(module_page: Page) -> Page:
    """The list of machines."""
    module_page.size(1200, 720)
    module_page.goto(f"{module_page.address()}#/machines")
    module_page.see("main h1")
    return module_page


def test_from_the_empty_page_to_a_shell(page: Page, module_browser: Browser, tiny_guest: tiny.TinyImage) -> None:
    page.see("text=No machines yet")
    taken(page, "1-empty")
    page.click(button("Choose an image"))
    page.click("label.tile:has-text('Tiny Linux')")
    page.see("role=dialog >> role=button[name='Create'][disabled=false]")
    page.see("pre.yaml >> text=kind: VirtualMachine")
    taken(page, "2-create")
    page.click("role=dialog >> " + button("Create"))
    page.see("h1:text-is('tiny')")
    page.see(state("Running"))
    page.click(tab("Console"))
    page.see(".console-state >> text=Connected")
    page.click(".xterm-screen")
    page.press("Enter")
    page.see(".xterm-rows >> text=root@tiny:/#")
    page.type("uptime\n")
    page.see(".xterm-rows >> text=load average")
    taken(page, "3-shell")
    assert module_browser.wrong() == []


def test_from_a_broken_machine_to_a_cured_one(page: Page, module_browser: Browser, module_registry: Registry, tmp_path: Path) -> None:
    """The image is not in the registry: the list says that the machine fails, and its page says why and what to do.

    The cure is to push the image. The machine tries again by itself, and the page follows.
    """
    page.apply(yaml.safe_dump(machine("web", f"{module_registry.address}/disks/web:1")))
    page.see("[role=row]:has-text('web') .state.bad")
    taken(page, "4-broken")
    page.open_machine("web")
    page.see(".why.bad .cause")
    page.see(".why .cure")
    taken(page, "5-why")
    module_registry.push("disks/web:1", {"disk/disk.img": bootsector.write(tmp_path / "disk.img")})
    page.see(state("Running"))
    page.see(".why.good")
    page.miss(".why .cure")
    taken(page, "6-cured")
    assert module_browser.wrong() == []
