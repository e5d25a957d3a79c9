"""Keys of the screen, as a guest's keyboard sends them: the guest writes each byte to the serial console."""

import pytest
import yaml

from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import button, item, state, tab
from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

# Set 1 of the codes: a key that comes up adds 0x80, and e0 begins those that came later.
CONTROL_ALT, UP = "1d 38 ", "b8 9d "
F2, DELETE = "3c bc ", "e0 53 e0 d3 "
# What the terminal shows, as one line.
_SAID = """() => [...document.querySelectorAll(".xterm-rows > div")].map((each) => each.textContent).join("")
  .replace(/\\u00a0/g, " ").trimEnd()"""
_HEARS = f"""(codes) => new Promise((done) => {{
  const look = () => (({_SAID})().endsWith(codes.trimEnd()) ? done() : requestAnimationFrame(look));
  look();
}})"""


@pytest.fixture(scope="module")
def consoles(module_page: Page, module_registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> tuple[Page, Page]:
    """The serial console of a machine, and its screen in a window of its own."""
    disk = bootsector.keyboard(tmp_path_factory.mktemp("guest") / "disk.img")
    made = machine("keys", module_registry.push("disks/keyboard:1", {"disk/disk.img": disk}))
    made["spec"]["template"]["spec"]["domain"]["devices"]["autoattachGraphicsDevice"] = True
    module_page.apply(yaml.safe_dump(made))
    module_page.open_machine("keys")
    module_page.see(state("Running"))
    module_page.click(tab("Screen"))
    own = module_page.popup(button("Own window"))
    own.see(".detached-page canvas")
    module_page.click(tab("Console"))
    module_page.see(".console-state >> text=Connected")
    return module_page, own


def hears(serial: Page, codes: str) -> None:
    """Wait until the guest has heard these bytes last."""
    serial.evaluate(_HEARS, codes)


def test_ctrl_alt_del_arrives(consoles: tuple[Page, Page], module_browser: Browser) -> None:
    serial, screen = consoles
    screen.click(button("Ctrl+Alt+Del"))
    hears(serial, CONTROL_ALT + DELETE + UP)
    assert module_browser.wrong() == []


def test_a_combination_of_the_menu_arrives(consoles: tuple[Page, Page], module_browser: Browser) -> None:
    serial, screen = consoles
    screen.click(button("Keys"))
    screen.click("role=menuitem[name='Ctrl+Alt+F2']")
    hears(serial, CONTROL_ALT + F2 + UP)
    assert module_browser.wrong() == []


def test_text_is_typed_on_the_keyboard(consoles: tuple[Page, Page], module_browser: Browser) -> None:
    """`a`, `B` with shift, and Enter."""
    serial, screen = consoles
    screen.click(button("Type text"))
    screen.fill("role=dialog >> textarea", "aB\n")
    screen.click("role=dialog >> " + button("Type"))
    screen.see("text=Typed the text")
    hears(serial, "1e 9e 2a 30 b0 aa 1c 9c ")
    assert module_browser.wrong() == []


def test_keys_of_the_person_arrive(consoles: tuple[Page, Page], module_browser: Browser) -> None:
    serial, screen = consoles
    screen.click(".screen canvas")
    screen.press("z")
    hears(serial, "2c ac ")
    assert module_browser.wrong() == []


def test_a_person_who_only_watches_presses_no_key(consoles: tuple[Page, Page], module_browser: Browser) -> None:
    serial, screen = consoles
    screen.click(button("More tools of the screen"))
    screen.click(item("Only watch"))
    screen.click(".screen canvas")
    screen.press("q")
    screen.click(button("More tools of the screen"))
    screen.click(item("Use keyboard and mouse"))
    screen.click(".screen canvas")
    screen.press("z")
    hears(serial, "2c ac ")
    assert "10 90 " not in serial.evaluate(_SAID)
    assert module_browser.wrong() == []
