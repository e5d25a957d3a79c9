"""From the empty page to a machine's shell, and through its life, in a browser."""

import pytest
import yaml

from paddock.engine.images.build import tiny
from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import HOSTILE, SignIn, button, item, state, tab
from tests.host.runs.conftest import Data, machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

ROWS = ".xterm-rows"
# How many colours a picture has; noVNC draws into a canvas.
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


def test_three_clicks_lead_from_the_empty_page_to_a_shell(console: SignIn, browser: Browser, tiny_guest: tiny.TinyImage) -> None:
    """Empty page, create in three clicks, live state, serial console, guest's report, reboot, reconnection, screen, picture."""
    page = console()
    page.see("text=No machines yet")
    page.click(button("Choose an image"))
    page.click("label.tile:has-text('Tiny Linux')")
    page.click("role=dialog >> " + button("Create"))
    page.see("h1:text-is('tiny')")
    page.see(state("Running"))
    page.click(tab("Console"))
    page.see(".console-state >> text=Connected")
    page.click(".xterm-screen")
    page.press("Enter")
    page.see(f"{ROWS} >> text=root@tiny:/#")
    page.type("echo b$((40+2))b\n")
    page.see(f"{ROWS} >> text=b42b")
    # What a guest says and reports is text, whatever it looks like.
    page.type(f"printf '%s \\033]8;;javascript:alert(1)\\033\\\\link\\033]8;;\\033\\\\ done%s\\n' \"{HOSTILE}\" 1\n")
    page.see(f"{ROWS} >> text=done1")
    page.type(f"echo 'PRETTY_NAME=\"{HOSTILE}\"' > /etc/os-release; echo wrote$((1+1))\n")
    page.see(f"{ROWS} >> text=wrote2")
    page.click(tab("Overview"))
    page.see("section:has(#guest-title) >> text=<img src=x")
    page.see("section:has(#access-title) >> text=paddock ssh")
    # The screen, and what one can do with it.
    page.click(tab("Screen"))
    page.see(".console-state >> text=Connected")
    assert page.evaluate(_COLOURS) > 1
    page.click(button("More tools of the screen"))
    assert page.download(item("Save a picture")).read_bytes().startswith(b"\x89PNG\r\n")
    own = page.popup(button("Own window"))
    own.see(".detached-page canvas")
    # A restart ends the connection; the page makes another. A reboot of the guest's own does not end it.
    page.click(tab("Console"))
    page.see(".console-state >> text=Connected")
    shell_cleared(page)
    page.click(button("Restart"))
    page.see(".console-state >> text=Connected again")
    page.see(f"{ROWS} >> text=READY tiny")
    shell_cleared(page)
    page.type("reboot -f\n")
    page.see(f"{ROWS} >> text=READY tiny")
    own.see(".console-state >> text=Connected again")
    page.click(tab("Usage"))
    page.see("canvas")
    page.click("nav[aria-label=Breadcrumb] >> text=Machines")
    page.see("role=row[name=/tiny/] >> .addresses .copy")
    assert page.count("role=row[name=/tiny/] >> .meter") == 2
    assert browser.wrong() == []


def shell_cleared(page: Page) -> None:
    """Leave nothing on the terminal that an earlier boot wrote."""
    page.click(".xterm-screen")
    page.press("Enter")
    page.see(f"{ROWS} >> text=root@tiny:/#")
    page.type("clear\n")
    page.miss(f"{ROWS} >> text=READY tiny")


def test_the_header_leads_a_machine_through_its_states(console: SignIn, browser: Browser, disk_machine: str) -> None:
    """Header actions with reasons, the state that follows them, the snapshot tree, restore."""
    page = console()
    page.apply(disk_machine)
    page.open_machine("web")
    page.see(state("Running"))
    page.see("role=button[name='Start'][disabled=true]")
    reason = page.attribute("role=button[name='Start']", "aria-describedby")
    assert page.evaluate("(id) => document.getElementById(id).textContent", reason).endswith(".")
    page.click(button("Pause"))
    page.see(state("Paused"))
    page.click(button("Unpause"))
    page.see(state("Running"))
    page.click(button("More"))
    page.click(item("Suspend"))
    page.see(state("Suspended"))
    page.click(button("Resume"))
    page.see(state("Running"))
    page.click(button("Stop"))
    page.see(state("Stopped"))
    page.click(tab("Snapshots"))
    for name in ("one", "two"):
        page.click(".machine-actions >> " + button("Take a snapshot"))
        page.fill("role=dialog >> input", name)
        page.click("role=dialog >> " + button("Take snapshot"))
        page.see(f".snapshot-tree li:has(b:text-is('{name}')) >> text=/ready/i")
    # The second one follows the first.
    page.see(".snapshot-tree li li b:text-is('two')")
    page.click(".snapshot-tree > li > .snapshot >> " + button("Restore"))
    page.click("role=dialog >> " + button("Restore"))
    page.see(".snapshot-tree > li > .snapshot >> text=the disks go on from here")
    page.click(button("Start"))
    page.see(state("Running"))
    assert browser.wrong() == []


def test_the_editor_shows_mistakes_and_the_plan(console: SignIn, browser: Browser, disk_machine: str) -> None:
    """YAML with findings at their lines, the difference, the plan, saving, and the change that waits for a restart."""
    # The editor draws the lines in view only.
    page = console(viewport={"width": 1280, "height": 1800})
    page.apply(disk_machine)
    page.open_machine("web")
    page.see(state("Running"))
    page.click(tab("YAML"))
    page.click(".cm-line:has-text('guest: 32Mi')")
    page.press("End")
    page.type("xx")
    page.see(".findings .error")
    found = page.text(".findings .error b")
    lines = page.evaluate(
        "(find) => [...document.querySelectorAll('*')].flatMap((each) => [each, ...(each.shadowRoot?.querySelectorAll('*') ?? [])])"
        ".filter((each) => each.matches('.cm-line')).findIndex((each) => each.textContent.includes(find)) + 1",
        "guest: 32Mixx",
    )
    assert found == f"Error, line {lines}"
    page.see("role=button[name='Save'][disabled=true]")
    page.press("Backspace", "Backspace", "Backspace", "Backspace", "Backspace", "Backspace")
    page.type(" 48Mi")
    page.see(".changes >> text=32Mi")
    page.see(".changes >> text=restart")
    page.click("label:has-text('Difference')")
    page.see(".editor-side >> text=guest: 48Mi")
    page.click(button("Save"))
    page.see("text=/Saved/")
    page.click(tab("Overview"))
    page.see(".pending >> text=48Mi")
    page.see(".pending >> text=32Mi")
    page.click(button("Restart"))
    page.miss(".pending")
    page.see(state("Running"))
    assert browser.wrong() == []


def test_a_list_finds_and_stops_machines(console: SignIn, browser: Browser, boot_image: str) -> None:
    """Live rows, labels, search, saved filters, columns, selection, bulk actions, the command palette."""
    page = console()
    for name in ("red", "green", "blue"):
        page.apply(yaml.safe_dump(with_labels(name, boot_image)))
    page.see("[role=grid][aria-rowcount='4']")
    for name in ("red", "green", "blue"):
        page.see(f"[role=row]:has-text('{name}') .state.good")
    page.fill("input[type=search]", "label:colour=red")
    page.miss("role=grid >> text=green")
    page.see("role=grid >> role=link[name='red']")
    page.click(button("Save this filter"))
    page.fill("input[type=search]", "")
    page.see("role=link[name='green']")
    page.click(".chip:has-text('label:colour=red') >> nth=0")
    page.miss("role=link[name='green']")
    page.fill("input[type=search]", "")
    page.click(button("Columns"))
    page.click("[role=group][aria-label=Columns] label:has-text('Namespace')")
    page.press("Escape")
    page.see("role=columnheader[name='Namespace']")
    page.click("input[aria-label='Select red']")
    page.click("input[aria-label='Select blue']")
    page.see("text=2 machines selected")
    page.click("role=toolbar >> " + button("Stop"))
    for name in ("red", "blue"):
        page.see(f"[role=row]:has-text('{name}') .state.off")
    page.see("[role=row]:has-text('green') .state.good")
    page.press("Control+k")
    page.see("dialog.palette input")
    page.type("stop green")
    page.press("Enter")
    page.see("[role=row]:has-text('green') .state.off")
    assert browser.wrong() == []


def with_labels(name: str, image: str) -> Data:
    """A machine of the guest of 512 bytes."""
    made = machine(name, image)
    made["metadata"]["labels"] = {"colour": name}
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    return made
