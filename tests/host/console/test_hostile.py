"""Programs in the texts of objects and guests: the page shows them, and runs none.

The policy of the page would refuse such a program, so these windows are without it: the page itself must never make an element of a text.
"""

from collections.abc import Iterator

import pytest

from tests.host.console import stock
from tests.host.console.browser import Browser, Page
from tests.host.console.conftest import TABS, TOPICS, tab
from tests.host.console.stock import NAME, PROGRAMS, StockedConsole

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

# Elements that no source of the page has, in shadow trees, too; and the number of programs that can be read.
_LOOK = """() => {
  const found = [], roots = [document];
  while (roots.length) {
    for (const each of roots.pop().querySelectorAll("*")) {
      if (each.shadowRoot) roots.push(each.shadowRoot);
      const names = each.getAttributeNames();
      const address = each.getAttribute("href") ?? each.getAttribute("src") ?? "";
      if (names.some((name) => name.startsWith("on")) || /^\\s*javascript:/i.test(address) || address === "x"
          || (each.localName === "script" && !each.src) || ["iframe", "object", "embed"].includes(each.localName)) {
        found.push(each.outerHTML.slice(0, 200));
      }
    }
  }
  return { found, ran: globalThis.ran ?? null, readable: document.querySelector("main").innerText.split("globalThis.ran").length - 1 };
}"""
# Their columns have names, numbers and words of enumerations only.
PLAIN = ("volumes", "networks", "pools")


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockedConsole]:
    """A console whose objects are full of programs."""
    with stock.stocked(tmp_path_factory.mktemp("stock")) as made:
        yield made


@pytest.fixture(scope="module")
def page(stocked: StockedConsole, module_browser: Browser) -> Page:
    """A window without the policy."""
    # All columns have room: some of those that go first have the only texts of a row.
    found = module_browser.open(stocked.link, bypass_csp=True, viewport={"width": 2400, "height": 800})
    found.see("#main")
    return found


def looked(page: Page) -> int:
    """Return the number of programs in view, of which none may have run or become an element."""
    page.miss("main .spinner")
    seen = page.evaluate(_LOOK)
    assert (seen["found"], seen["ran"]) == ([], None)
    return int(seen["readable"])


def test_the_objects_are_full_of_programs(stocked: StockedConsole) -> None:
    assert min(stocked.texts.values()) >= 3
    assert sum(stocked.texts.values()) > 700


@pytest.mark.parametrize("topic", TOPICS)
def test_no_program_of_an_object_runs(page: Page, module_browser: Browser, topic: str) -> None:
    page.goto(f"{page.address()}#/{topic}")
    page.see("main h1")
    if topic not in ("host", "settings"):
        page.see("role=grid >> role=row >> nth=1")
        assert looked(page) > 0 or topic in PLAIN
        page.fill("input[type=search]", PROGRAMS[0])
        looked(page)
        page.fill("input[type=search]", "")
    looked(page)
    assert module_browser.wrong() == []


@pytest.mark.parametrize("word", ["vm", "vmi", "stakater", "virtrigaud", "vitistack"])
def test_no_program_of_a_machine_runs(page: Page, module_browser: Browser, word: str) -> None:
    page.goto(f"{page.address()}#/machines")
    page.see("role=grid")
    looked(page)
    page.goto(f"{page.address()}#/machines/{word}/default/{NAME}")
    page.see(f"h1:text-is('{NAME}')")
    for name in TABS:
        page.click(tab(name))
        page.see("role=tabpanel")
        looked(page)
        if name == "YAML":
            page.see(".cm-line:has-text('globalThis.ran')")
    assert module_browser.wrong() == []


def test_an_element_made_of_a_text_is_found(page: Page, module_browser: Browser) -> None:
    """The text becomes an element, as it would in a page with a mistake; without the policy, its program runs."""
    page.evaluate("(text) => { document.querySelector('main').innerHTML = text; }", PROGRAMS[0])
    page.evaluate("() => new Promise((done) => { const look = () => (globalThis.ran ? done() : setTimeout(look)); look(); })")
    seen = page.evaluate(_LOOK)
    assert len(seen["found"]) == 1
    assert seen["ran"] == 1
    assert any(each.startswith("dialog: 1") for each in module_browser.wrong())
