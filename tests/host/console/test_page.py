"""What the page shows and refuses, in a browser and without a guest that runs."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import yaml

from tests.host.console.browser import Browser
from tests.host.console.conftest import HOSTILE, TABS, TOPICS, ConsoleHost, SignIn, button, state, tab
from tests.host.guests import Registry
from tests.host.runs.conftest import Data, Talk, machine

pytestmark = [pytest.mark.slow, pytest.mark.needs("qemu", "chromium")]

_OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
_BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"


def halted(name: str, **annotations: str) -> str:
    """A machine that does not run."""
    made = machine(name, strategy="Halted")
    made["metadata"]["annotations"] = annotations
    return yaml.safe_dump(made)


def hostile_event(name: str) -> Data:
    """An event of a machine, with markup in every text."""
    about = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "namespace": "default", "name": name}
    return {
        "metadata": {"name": f"{name}.1", "namespace": "default"},
        "involvedObject": about,
        "reason": HOSTILE,
        "message": f"</script><script>alert(2)</script>{HOSTILE}",
        "source": {"component": HOSTILE},
        "type": "Warning",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
    }


def test_the_cause_of_a_broken_machine_is_named(console: SignIn, browser: Browser, registry: Registry) -> None:
    """The state with its reason in the list, the panel that says why, its evidence, its fix."""
    page = console()
    page.apply(yaml.safe_dump(machine("web", f"{registry.address}/disks/nothing:1")))
    page.see("[role=row]:has-text('web') .state.bad")
    page.open_machine("web")
    page.see(".why.bad .cause")
    assert "disks/nothing:1" in page.text(".why")
    page.see(".why .cure")
    assert browser.wrong() == []


def test_text_of_objects_never_runs(console: SignIn, host: ConsoleHost, browser: Browser) -> None:
    """Markup in annotations, labels' values, events, names of disks and user data stays text, on every page and tab."""
    page = console()
    made = machine("web", strategy="Halted")
    made["metadata"] |= {"annotations": {"note": HOSTILE, "other": "\"'><svg onload=alert(3)>"}, "labels": {"x": "javascript"}}
    data = f"#cloud-config\n# {HOSTILE}\nhostname: {HOSTILE}\n"
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "seed", "cloudInitNoCloud": {"userData": data}}]
    made["spec"]["template"]["spec"]["domain"]["devices"]["disks"] = [{"name": "seed", "disk": {"bus": "virtio"}}]
    page.apply(yaml.safe_dump(made))
    page.request(
        "POST",
        "apply",
        {"yaml": yaml.safe_dump({"apiVersion": "v1", "kind": "Event", **hostile_event("web")}), "dryRun": False, "force": False},
    )
    page.open_machine("web")
    for name in TABS:
        page.click(tab(name))
        page.see("role=tabpanel")
        if name == "YAML":
            page.see(".cm-line:has-text('onerror=alert')")
        elif name == "Events":
            page.see("role=tabpanel >> text=onerror=alert(1)")
    base = page.address()
    for topic in TOPICS:
        page.goto(f"{base}#/{topic}")
        page.see("main h1")
    page.goto(f"{base}#/events")
    page.see("text=onerror=alert(1)")
    page.goto(f"{base}#/machines/vm/default/{HOSTILE}")
    page.see("main h1:has-text('onerror')")
    page.press("Control+k")
    page.see("dialog.palette input")
    page.type(HOSTILE)
    page.see("text=Nothing fits.")
    assert browser.wrong() == []


def test_every_page_fits_a_phone_and_has_dark_colours(console: SignIn, browser: Browser) -> None:
    """No page is wider than 390 pixels; the theme follows the system, and the choice."""
    page = console(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.apply(halted("a-machine-whose-name-is-as-long-as-the-names-of-machines-may-be"))
    page.see("role=grid")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    dark = page.evaluate(_BACKGROUND)
    assert page.evaluate(_OVERFLOW) <= 0
    page.click("role=grid >> role=link")
    for name in TABS:
        page.click(tab(name))
        page.see("role=tabpanel")
        assert page.evaluate(_OVERFLOW) <= 0, name
    base = page.address()
    for topic in TOPICS:
        page.goto(f"{base}#/{topic}")
        page.see("main h1")
        assert page.evaluate(_OVERFLOW) <= 0, topic
    page.click(".segments label:has-text('Light') input")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "light"
    assert page.evaluate(_BACKGROUND) != dark
    page.goto(f"{base}#/machines")
    page.click(button("New machine"))
    page.see("role=dialog")
    assert page.evaluate(_OVERFLOW) <= 0
    assert browser.wrong() == []


def test_a_form_writes_every_dialect(console: SignIn, browser: Browser) -> None:
    """Advanced fields, number, labels, validation, YAML in five dialects, several machines at once, keyboard."""
    page = console()
    page.see("text=No machines yet")
    page.press("n")
    page.click("role=dialog >> label.tile >> nth=0")
    page.see("pre.yaml >> text=kind: VirtualMachine")
    for dialect, group in {
        "Stakater": "stakater",
        "VirtRigaud": "virtrigaud",
        "Vitistack": "vitistack",
        # Kubermatic-Virtualization takes KubeVirt's own kind.
        "Kubermatic": "kubevirt.io/v1",
        "KubeVirt": "kubevirt.io/v1",
    }.items():
        page.click(f"fieldset[aria-label=Dialect] label:has-text('{dialect}')")
        page.see(f"pre.yaml >> text=/apiVersion: .*{group}/")
    page.fill("role=dialog >> role=textbox[name='Name']", "Not A Name")
    page.see("role=dialog >> role=button[name='Create'][disabled=true]")
    page.fill("role=dialog >> role=textbox[name='Name']", "web")
    page.click("role=dialog >> summary:has-text('Placement')")
    page.fill("role=dialog >> role=spinbutton[name='Number of machines']", "3")
    page.see("role=dialog >> " + button("Create 3 machines"))
    page.see("pre.yaml >> text=name: web-3")
    page.press("Escape")
    page.miss("role=dialog")
    assert browser.wrong() == []


def test_the_page_says_that_the_server_is_away(console: SignIn, host: ConsoleHost, browser: Browser) -> None:
    """Rows stay when the server goes, and nothing of the page comes from elsewhere."""
    page = console()
    page.apply(halted("web"))
    page.see("role=link[name='web']")
    assert browser.wrong() == []
    host.kill()
    page.see(".away")
    page.see("role=link[name='web']")
    page.click("role=link[name='web']")


class ViewerConsole:
    """A console of its own, where people sign in with tokens."""

    def __init__(self, host: ConsoleHost) -> None:
        log = host.root / "viewer"
        command = [
            sys.executable,
            "-m",
            "paddock.app",
            "ui",
            "--listen=127.0.0.1:0",
            "--login=token",
            f"--kubeconfig={host.root}/kubeconfig",
        ]
        with log.open("wb") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said)
        deadline = time.monotonic() + 60
        while not (found := re.search(r"http://[\d.:]+", log.read_text())):
            assert self.process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        self.address = found[0]

    def end(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(60)


async def viewer_token(host: ConsoleHost) -> str:
    """Return a token of a ServiceAccount that may look, and nothing else."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}
    binding = {"metadata": {"name": "viewer"}, "roleRef": role, "subjects": [subject]}
    async with host.client() as client:
        talk = Talk(host, client)
        await talk.make("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "viewer"}})
        await talk.make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
        answer = await talk.make("/api/v1/namespaces/default/serviceaccounts/viewer/token", {"spec": {}})
    return str(answer["status"]["token"])


@pytest.fixture
def viewers(host: ConsoleHost) -> Iterator[ViewerConsole]:
    """A console of its own for the server that runs."""
    host.start()
    made = ViewerConsole(host)
    yield made
    made.end()


def test_a_viewer_looks_and_does_not_act(viewers: ViewerConsole, host: ConsoleHost, browser: Browser) -> None:
    """A token signs in; what its user may not do is greyed out, with the reason, and refused if the page asks for it all the same."""
    owner = browser.open(host.link())
    owner.see("#main")
    owner.apply(halted("web"))
    page = browser.open(viewers.address)
    page.fill("input[type=password]", "nonsense")
    page.click(button("Sign in"))
    page.see("form.sign-in .note")
    page.fill("input[type=password]", asyncio.run(viewer_token(host)))
    page.click(button("Sign in"))
    page.open_machine("web")
    page.see("role=button[name='Start'][disabled=true]")
    reason = page.attribute("role=button[name='Start']", "aria-describedby")
    assert "may not" in page.evaluate("(id) => document.getElementById(id).textContent", reason)
    refused = page.request("POST", "machines/vm/default/web/actions/start", {"options": {}})
    assert refused["status"] == 403, refused
    refused = page.request("POST", "apply", {"yaml": halted("other"), "dryRun": False, "force": False})
    assert refused["status"] == 403, refused
    owner.goto(f"{owner.address()}#/machines/vm/default/web")
    owner.see(state("Stopped"))
