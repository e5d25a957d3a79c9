"""A machine through its states, its editor and its list, in a browser."""

import pytest
import yaml

from tests.host.console.browser import Browser
from tests.host.console.conftest import SignIn, button, item, state, tab
from tests.host.runs.conftest import Data, machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]


def test_the_header_leads_a_machine_through_its_states(console: SignIn, browser: Browser, disk_machine: str) -> None:
    """Header actions with reasons, the state that follows them, what the disk takes, the snapshot tree, restore."""
    page = console()
    page.apply(disk_machine)
    page.open_machine("web")
    page.see(state("Running"))
    page.see("role=button[name='Start'][disabled=true]")
    reason = page.attribute("role=button[name='Start']", "aria-describedby")
    assert page.evaluate("(id) => document.getElementById(id).textContent", reason).endswith(".")
    page.see("role=meter[name='Part of root taken on the host']")
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
