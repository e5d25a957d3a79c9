"""WCAG 2.2 at the levels A and AA, as axe-core judges it: every page, tab, dialog and menu, in both themes.

Playwright brings axe-core into a page as its debugger does, so the pages are judged under their own policy.
"""

import pytest
import yaml

from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import TABS, TOPICS, button, state, tab
from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def machines(module_page: Page, module_registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The console with a machine that runs, one that is off, and one that cannot start."""
    disk = bootsector.write(tmp_path_factory.mktemp("guest") / "disk.img")
    made = machine("web", module_registry.push("disks/boot:1", {"disk/disk.img": disk}))
    made["spec"]["template"]["spec"]["domain"]["devices"]["autoattachGraphicsDevice"] = True
    broken = machine("broken", f"{module_registry.address}/disks/nothing:1")
    for each in (made, machine("off", strategy="Halted"), broken):
        module_page.apply(yaml.safe_dump(each))
    module_page.see("[role=row]:has-text('web') .state.good")
    module_page.see("[role=row]:has-text('broken') .state.bad")
    return module_page


@pytest.fixture(params=THEMES)
def page(machines: Page, request: pytest.FixtureRequest) -> Page:
    """The list of machines in a theme."""
    machines.colours(request.param)
    machines.goto(f"{machines.address()}#/machines")
    machines.see("role=grid")
    return machines


def test_the_sign_in_has_no_barrier(machines: Page, module_browser: Browser) -> None:
    page = module_browser.open(machines.address())
    for theme in THEMES:
        page.colours(theme)
        page.see("main")
        assert page.barriers() == [], theme
    page.close()


def test_the_list_has_no_barrier(page: Page) -> None:
    assert page.barriers() == []
    page.click("input[aria-label='Select web']")
    page.see("text=1 machine selected")
    page.click(button("Columns"))
    assert page.barriers() == []
    page.press("Escape")
    page.click(button("Clear"))


@pytest.mark.parametrize("topic", TOPICS)
def test_no_page_has_a_barrier(page: Page, topic: str) -> None:
    page.goto(f"{page.address()}#/{topic}")
    page.see("main h1")
    assert page.barriers() == []


@pytest.mark.parametrize("name", ["web", "off", "broken"])
def test_no_tab_of_a_machine_has_a_barrier(page: Page, name: str) -> None:
    page.open_machine(name)
    for each in TABS:
        page.click(tab(each))
        page.see("role=tabpanel")
        assert page.barriers() == [], each


def test_no_dialog_has_a_barrier(page: Page) -> None:
    page.click(button("New machine"))
    page.see("role=dialog")
    assert page.barriers() == []
    page.click("role=dialog >> label.tile >> nth=0")
    page.see("pre.yaml >> text=kind: VirtualMachine")
    for summary in ("Access", "Placement"):
        page.click(f"role=dialog >> summary:has-text('{summary}')")
    assert page.barriers() == []
    page.press("Escape")
    page.miss("role=dialog")
    page.press("?")
    page.see("role=dialog")
    assert page.barriers() == []
    page.press("Escape")
    page.press("Control+k")
    page.see("dialog.palette input")
    assert page.barriers() == []
    page.press("Escape")


def test_the_dialogs_of_a_machine_have_no_barrier(page: Page) -> None:
    page.open_machine("web")
    page.see(state("Running"))
    page.click(button("More"))
    page.see("role=menu")
    assert page.barriers() == []
    page.press("Escape")
    page.click(".machine-actions >> " + button("Take a snapshot"))
    page.see("role=dialog")
    assert page.barriers() == []
    page.press("Escape")
    page.click(tab("Screen"))
    page.click(button("Type text"))
    page.see("role=dialog")
    assert page.barriers() == []
    page.press("Escape")


def test_no_page_of_a_phone_has_a_barrier(page: Page) -> None:
    page.size(390, 844)
    for topic in ("machines", "events", "host", "settings"):
        page.goto(f"{page.address()}#/{topic}")
        page.see("main h1")
        assert page.barriers() == [], topic
    page.goto(f"{page.address()}#/machines/vm/default/web")
    page.see("h1:text-is('web')")
    assert page.barriers() == []
    page.size(1280, 800)


def test_a_barrier_is_found(page: Page) -> None:
    """A button without a name, and a text that is too pale."""
    page.evaluate(
        "() => { const made = document.createElement('button'); made.id = 'nameless'; document.querySelector('main').append(made); }"
    )
    assert [each.split(":")[0] for each in page.barriers()] == ["button-name"]
    page.evaluate("() => document.getElementById('nameless').remove()")
