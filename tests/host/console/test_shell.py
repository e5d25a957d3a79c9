"""A machine from the empty page to its shell, and everything that a person does in its consoles: one host and one guest for all tests."""

import pytest

from paddock.base.images.build import tiny
from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import HOSTILE, button, item, state, tab

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

ROWS = ".xterm-rows"
PROMPT = f"{ROWS} >> text=root@tiny:/#"
CONNECTED = ".console-state >> text=/Connected/"
# Resolves when noVNC's canvas shows more than one colour.
_COLOURS = """() => new Promise((resolve) => {
  const look = () => {
    const canvas = document.querySelector(".screen canvas");
    const found = new Set();
    if (canvas && canvas.width > 1) {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      for (let at = 0; at < data.length; at += 4) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    }
    if (found.size > 1) resolve(found.size);
    else requestAnimationFrame(look);
  };
  look();
})"""
_LINE_HEIGHT = "() => parseFloat(getComputedStyle(document.querySelector('.xterm-rows > div')).height)"
_IN_FULL = "() => document.fullscreenElement?.className ?? ''"


@pytest.fixture(scope="module")
def machine_page(module_page: Page, tiny_guest: tiny.TinyImage) -> Page:
    """The page of a machine that three clicks have made."""
    module_page.see("text=No machines yet")
    module_page.click(button("Choose an image"))
    module_page.click("label.tile:has-text('Tiny Linux')")
    module_page.click("role=dialog >> " + button("Create"))
    module_page.see("h1:text-is('tiny')")
    return module_page


@pytest.fixture
def page(machine_page: Page) -> Page:
    """The overview of the machine, which runs."""
    machine_page.goto(f"{machine_page.address()}#/machines/vm/default/tiny")
    machine_page.see(state("Running"))
    return machine_page


@pytest.fixture
def shell(page: Page) -> Page:
    """The serial console, with a shell that waits."""
    page.click(tab("Console"))
    page.see(CONNECTED)
    prompt(page)
    return page


def prompt(page: Page) -> None:
    """Leave nothing on the terminal but a prompt."""
    page.click(".xterm-screen")
    page.press("Enter")
    page.see(PROMPT)
    page.type("clear; echo clear$((1+1))\n")
    page.see(f"{ROWS} >> text=clear2")
    page.miss(f"{ROWS} >> text=READY")


def test_three_clicks_lead_from_the_empty_page_to_a_machine(page: Page, module_browser: Browser) -> None:
    page.see("h1:text-is('tiny')")
    assert module_browser.wrong() == []


def test_a_terminal_with_keys_and_colours(shell: Page, module_browser: Browser) -> None:
    shell.type("echo b$((40+2))b\n")
    shell.see(f"{ROWS} >> text=b42b")
    # The arrow brings the command back, and the terminal keeps the colours that a program asks for.
    shell.press("ArrowUp", "Enter")
    shell.evaluate(
        "() => new Promise((done) => { const look = () => document.querySelector('.xterm-rows').innerText.split('b42b').length > 2"
        " ? done() : requestAnimationFrame(look); look(); })"
    )
    shell.type("printf '\\033[31mred%s\\033[0m\\n' 1\n")
    shell.see(f"{ROWS} >> span.xterm-fg-1:has-text('red1')")
    assert module_browser.wrong() == []


def test_text_is_pasted_into_the_serial_console(shell: Page, module_browser: Browser) -> None:
    shell.click(button("Paste"))
    shell.fill("role=dialog >> textarea", "echo one$((1+1)); echo three$((1+3))\n")
    shell.see("role=dialog >> text=2 lines")
    shell.click("role=dialog >> " + button("Paste"))
    shell.see(f"{ROWS} >> text=one2")
    shell.see(f"{ROWS} >> text=three4")
    assert module_browser.wrong() == []


def test_the_text_of_the_terminal_grows(shell: Page, module_browser: Browser) -> None:
    before = shell.evaluate(_LINE_HEIGHT)
    for entry, compare in (("Larger text", float.__gt__), ("Smaller text", float.__eq__)):
        shell.click(button("More tools of the console"))
        shell.click(item(entry))
        assert compare(float(shell.evaluate(_LINE_HEIGHT)), float(before)), entry
    assert module_browser.wrong() == []


def test_the_guest_learns_the_size_of_the_window(shell: Page, module_browser: Browser) -> None:
    shell.click(button("More tools of the console"))
    shell.click(item("Tell the guest the window"))
    shell.see("text=/Typed the size: \\d+ rows, \\d+ columns/")
    rows = shell.evaluate("() => document.querySelector('.xterm-rows').childElementCount")
    shell.type('echo "size $(stty size)"\n')
    shell.see(f"{ROWS} >> text=size {rows} ")
    assert module_browser.wrong() == []


@pytest.mark.parametrize("name", ["Console", "Screen"])
def test_a_console_fills_the_screen(page: Page, module_browser: Browser, name: str) -> None:
    page.click(tab(name))
    page.see(CONNECTED)
    page.click(button("Full screen"))
    page.see("role=button[name='Full screen'][pressed=true]")
    assert "console-frame" in page.evaluate(_IN_FULL)
    page.click(button("Full screen"))
    page.see("role=button[name='Full screen'][pressed=false]")
    assert page.evaluate(_IN_FULL) == ""
    assert module_browser.wrong() == []


def test_the_screen_of_a_machine(page: Page, module_browser: Browser) -> None:
    """It has colours, a picture that is saved, and a window of its own."""
    page.click(tab("Screen"))
    page.see(CONNECTED)
    assert page.evaluate(_COLOURS) > 1
    page.click(button("More tools of the screen"))
    assert page.download(item("Save a picture")).read_bytes().startswith(b"\x89PNG\r\n")
    assert module_browser.wrong() == []


def test_a_console_has_a_window_of_its_own(page: Page, module_browser: Browser) -> None:
    page.click(tab("Screen"))
    page.see(CONNECTED)
    own = page.popup(button("Own window"))
    own.see(".detached-page canvas")
    own.see(CONNECTED)
    own.close()
    assert module_browser.wrong() == []


def test_the_overview_of_a_machine(page: Page, module_browser: Browser) -> None:
    """Identity, sizes, placement, the report of the guest agent."""
    overview = "section:has(#overview-title)"
    for text in ("1 core", "GiB", "images.paddock.internal/tiny", "Always", "TCG"):
        page.see(f"{overview} >> text={text}")
    page.see("section:has(#guest-title) >> text=Paddock tiny guest")
    assert module_browser.wrong() == []


def test_the_line_for_ssh_is_copied(page: Page, module_browser: Browser) -> None:
    access = "section:has(#access-title)"
    page.see(f"{access} >> text=paddock ssh")
    page.click(f"{access} >> role=button[name=/^Copy the command paddock ssh/]")
    page.see("text=Copied the command")
    assert page.clipboard().startswith("paddock ssh")
    assert module_browser.wrong() == []


def test_a_small_picture_of_the_screen(page: Page, module_browser: Browser) -> None:
    page.see("a.screenshot[data-state=here] img")
    assert page.evaluate("() => document.querySelector('a.screenshot img').naturalWidth") > 100
    page.click("a.screenshot")
    page.see(".screen canvas")
    assert module_browser.wrong() == []


def test_charts_are_drawn(page: Page, module_browser: Browser) -> None:
    page.click(tab("Usage"))
    for title in ("CPU", "Memory", "Disk", "Network"):
        page.see(f"figure:has(h3:text-is('{title}')) canvas")
    page.see("text=/Memory over .* On the host: now/")
    assert module_browser.wrong() == []


def test_a_row_has_bars_and_addresses(page: Page, module_browser: Browser) -> None:
    page.click("nav[aria-label=Breadcrumb] >> text=Machines")
    page.see("role=row[name=/tiny/] >> .copy")
    page.see("role=row[name=/tiny/] >> .meter >> nth=1")
    assert page.count("role=row[name=/tiny/] >> .meter") == 2
    page.click("role=row[name=/tiny/] >> .copy")
    page.see("text=/Copied \\d/")
    assert page.clipboard() in page.text("role=row[name=/tiny/] >> .copy")
    assert module_browser.wrong() == []


def test_text_of_a_guest_never_runs(shell: Page, module_browser: Browser) -> None:
    """The output of a guest, and the report of its agent: its name, its system and its file systems."""
    shell.type(
        f'printf \'%s \\033]8;;javascript:alert(1)\\033\\\\link\\033]8;;\\033\\\\ \\033]0;%s\\007 done%s\\n\' "{HOSTILE}" "{HOSTILE}" 1\n'
    )
    shell.see(f"{ROWS} >> text=done1")
    assert shell.count(f"{ROWS} >> a") == 0
    shell.type(f"echo 'PRETTY_NAME=\"{HOSTILE}\"' > /etc/os-release; hostname '{HOSTILE}'\n")
    shell.type(f"mkdir '/mnt/{HOSTILE}'; mount -t tmpfs tmpfs '/mnt/{HOSTILE}'; echo wrote$((1+1))\n")
    shell.see(f"{ROWS} >> text=wrote2")
    shell.click(tab("Overview"))
    shell.see("section:has(#guest-title) >> text=<img src=x >> nth=1")
    assert shell.count("img[src=x]") == 0
    shell.click("nav[aria-label=Breadcrumb] >> text=Machines")
    shell.see("role=row[name=/tiny/]")
    shell.goto(f"{shell.address()}#/machines/vm/default/tiny/console")
    shell.click(".xterm-screen")
    shell.type("hostname tiny\n")
    assert module_browser.wrong() == []


def test_a_console_connects_again_after_a_restart(page: Page, module_browser: Browser) -> None:
    """A restart ends the connection, and the page makes another. A reboot of the guest's own does not end it."""
    page.click(tab("Screen"))
    page.see(CONNECTED)
    own = page.popup(button("Own window"))
    own.see(CONNECTED)
    page.click(tab("Console"))
    page.see(CONNECTED)
    prompt(page)
    page.click(button("Restart"))
    page.see(".console-state >> text=Connected again")
    own.see(".console-state >> text=Connected again")
    page.see(f"{ROWS} >> text=READY tiny")
    prompt(page)
    page.type("reboot -f\n")
    page.see(f"{ROWS} >> text=READY tiny")
    assert page.text(".console-state").strip().endswith("Connected again")
    own.close()
    assert module_browser.wrong() == []
