"""Edits, namespaces, graphs, tasks and keys: what a person does with objects while no guest runs."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
import yaml

from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import button, state, tab
from tests.host.guests import serving
from tests.host.runs.conftest import Data, machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJustAKeyThatNobodyHasAnywhere ada@example"
HALF = 32 << 20


@pytest.fixture
def page(module_page: Page) -> Page:
    """The list of machines, of all namespaces."""
    # The editor draws the lines in view only.
    module_page.size(1280, 1800)
    module_page.goto(f"{module_page.address()}#/machines")
    module_page.see("main h1")
    module_page.choose("role=combobox[name='Namespace']", "")
    return module_page


def off(name: str, namespace: str = "default", **labels: str) -> Data:
    """A machine that does not run."""
    made = machine(name, strategy="Halted")
    made["metadata"] |= {"namespace": namespace, "labels": labels}
    return made


def test_an_edit_meets_the_edit_of_somebody_else(page: Page, module_browser: Browser) -> None:
    """Both versions are shown, the text stays, a save is refused with the reason, and the edit goes on from the stored object."""
    page.apply(yaml.safe_dump(off("edited", team="red")))
    page.open_machine("edited")
    page.click(tab("YAML"))
    page.click(".cm-line:has-text('team: red')")
    page.press("End")
    page.type("dish")
    page.see("role=button[name='Save'] >> visible=true")
    # Somebody else changes the same line, and another one.
    other = module_browser.open_beside(page)
    theirs = off("edited", team="blue")
    theirs["spec"]["template"]["spec"]["domain"]["memory"]["guest"] = "48Mi"
    other.apply(yaml.safe_dump(theirs))
    other.close()
    page.see("role=alert >> text=The stored object changed while you edited it")
    page.see(".conflict-side:has-text('Yours') >> text=team: reddish")
    page.see(".conflict-side:has-text('Stored') >> text=team: blue")
    page.click(button("Show their changes"))
    page.see(".diff-added >> text=guest: 48Mi")
    page.see("role=button[name='Save'][disabled=false]")
    page.click(button("Save"))
    page.see(".note.bad >> text=was changed since the edit began")
    page.see(".cm-line:has-text('team: reddish')")
    page.see(".cm-line:has-text('guest: 32Mi')")
    page.click(button("Bring my edit onto it"))
    page.see(".cm-line:has-text('guest: 48Mi')")
    page.see(".cm-line:has-text('team: reddish')")
    page.miss("role=alert >> text=The stored object changed while you edited it")
    page.see("role=button[name='Save'][disabled=false]")
    page.click(button("Save"))
    page.see("text=Saved: VirtualMachine edited changed.")
    assert module_browser.wrong() == []


def test_a_namespace_is_chosen(page: Page, module_browser: Browser) -> None:
    page.apply(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}))
    page.apply(yaml.safe_dump(off("here")))
    page.apply(yaml.safe_dump(off("there", "team-a")))
    page.see("role=grid >> role=link[name='here']")
    page.see("role=grid >> role=link[name='there']")
    page.choose("role=combobox[name='Namespace']", "team-a")
    page.miss("role=grid >> role=link[name='here']")
    page.see("role=grid >> role=link[name='there']")
    page.choose("role=combobox[name='Namespace']", "")
    page.see("role=grid >> role=link[name='here']")
    assert module_browser.wrong() == []


def test_a_graph_leads_to_related_objects(page: Page, module_browser: Browser) -> None:
    """A machine with its disk and its network; the arrow keys walk."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    template = {"metadata": {"name": "root-of-it"}, "spec": {"source": {"blank": {}}, "pvc": claim}}
    made = off("related")
    spec = made["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "root", "dataVolume": {"name": "root-of-it"}}]
    spec["domain"]["devices"]["disks"] = [{"name": "root", "disk": {"bus": "virtio"}}]
    page.apply(yaml.safe_dump({**made, "spec": {**made["spec"], "dataVolumeTemplates": [template]}}))
    page.open_machine("related")
    page.click(tab("Related"))
    page.see("svg.graph >> .graph-node[data-own=true]:has-text('related')")
    page.see("svg.graph >> .graph-node:has-text('root-of-it')")
    assert page.count(".graph-edge") >= 1
    page.click(".graph-node[data-own=true]")
    before = page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    page.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") != before
    assert module_browser.wrong() == []


class HalfServed(BaseHTTPRequestHandler):
    """A disk of 64 MiB, of which half comes, and the rest when the test says so."""

    rest: threading.Event
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *words: object) -> None:
        """Write nothing."""

    def do_HEAD(self) -> None:
        """Answer with the length."""
        self.send_response(200)
        self.send_header("Content-Length", str(2 * HALF))
        self.end_headers()

    def do_GET(self) -> None:
        """Answer with half of it."""
        self.do_HEAD()
        try:
            self.wfile.write(bytes(HALF))
            self.rest.wait()
            self.wfile.write(bytes(HALF))
        except OSError:
            # The import was cancelled.
            self.close_connection = True


@pytest.fixture
def slow_disk() -> Iterator[str]:
    """The address of a disk that stops halfway."""
    rest = threading.Event()
    with serving(type("Handler", (HalfServed,), {"rest": rest})) as address:
        yield f"http://{address}/disk.img"
        rest.set()


def test_work_under_way_has_progress_and_is_cancelled(page: Page, module_browser: Browser, slow_disk: str) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "128Mi"}}}
    head = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume"}
    metadata = {"name": "slow", "annotations": {"cdi.kubevirt.io/storage.bind.immediate.requested": "true"}}
    page.apply(yaml.safe_dump({**head, "metadata": metadata, "spec": {"source": {"http": {"url": slow_disk}}, "pvc": claim}}))
    page.see(".tasks-line >> text=Import the volume slow")
    page.click(".tasks-line")
    page.see(".task:has-text('slow') >> text=/^[1-9]\\d?%$/")
    page.click("role=button[name='Cancel Import the volume slow']")
    page.miss(".task:has-text('slow')")
    page.goto(f"{page.address()}#/volumes")
    page.see("main h1")
    page.miss("role=grid >> text=slow")
    assert module_browser.wrong() == []


def test_keys_are_pasted_and_remembered(page: Page, module_browser: Browser) -> None:
    """A mistake is named, the key comes into the manifest, and the next machine has it without being asked."""
    field = "role=dialog >> role=textbox[name='Another key']"
    page.click(button("New machine"))
    page.click("role=dialog >> label.tile >> nth=0")
    page.click("role=dialog >> summary:has-text('Access')")
    page.fill(field, "no key")
    page.press("Enter")
    page.see("role=dialog >> text=This is no public SSH key.")
    page.fill(field, KEY)
    page.press("Enter")
    page.see("role=dialog >> role=checkbox[name=/ada@example/][checked=true]")
    page.see(f"pre.yaml >> text={KEY.split()[1]}")
    page.press("Escape")
    page.miss("role=dialog")
    page.click(button("New machine"))
    page.click("role=dialog >> label.tile >> nth=0")
    page.see(f"pre.yaml >> text={KEY.split()[1]}")
    page.press("Escape")
    page.miss("role=dialog")
    assert module_browser.wrong() == []


def test_a_machine_that_is_off_has_no_console(page: Page, module_browser: Browser) -> None:
    """The page says why there is none, and that it waits."""
    page.apply(yaml.safe_dump(off("silent")))
    page.open_machine("silent")
    page.see(state("Stopped"))
    page.click(tab("Console"))
    page.see(".console-state >> text=/is not running.* The page connects again when the machine runs/")
    assert module_browser.wrong() == []
