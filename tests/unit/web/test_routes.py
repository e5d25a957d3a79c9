"""Patterns of the console's API, and the errors of its handlers."""

import msgspec
import pytest

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.fleet.machines.finding import AmbiguousMachine, MachineNotFound
from paddock.kubernetes.client.errors import Forbidden, StatusDetails, Unreachable
from paddock.web import problems, routes
from paddock.web.answers.rows import WebDone
from paddock.web.routes import RouteTable, WebRefusal, WebRequest, WebRoute
from paddock.web.table import table


@pytest.mark.parametrize(
    ("pattern", "path", "parts"),
    [
        ("me", "me", {}),
        ("me", "me/", None),
        ("machines/PLACE", "machines/vm/default/web", {"PLACE": "vm/default/web"}),
        ("machines/PLACE/why", "machines/vm/default/web/why", {"PLACE": "vm/default/web"}),
        ("machines/PLACE/why", "machines/vm/default/web", None),
        ("machines/PLACE/actions/VERB", "machines/vmi/a/b.c/actions/stop", {"PLACE": "vmi/a/b.c", "VERB": "stop"}),
        ("kinds/TOPIC", "kinds/im%61ges", {"TOPIC": "images"}),
        # What would lead to another path of the API is no name.
        ("machines/PLACE", "machines/vm/../web", None),
        ("machines/PLACE", "machines/vm/%2e%2e/web", None),
        ("machines/PLACE", "machines/vm/default/a%2Fb", None),
        ("machines/PLACE", "machines/vm/default/a%3Fb", None),
        ("machines/PLACE", "machines/vm/default/a%25b", None),
        ("machines/PLACE", "machines/vm/default/a%0Ab", None),
        ("machines/PLACE", "machines/vm//web", None),
        ("tasks/ID/cancel", "tasks/a.b/c/d/cancel", {"ID": "a.b/c/d"}),
    ],
)
def test_patterns(pattern: str, path: str, parts: dict[str, str] | None) -> None:
    assert routes.match(pattern, path.split("/")) == parts


@pytest.mark.parametrize("text", ["vm/default", "vm/default/web/x", "pod/default/web", "", "vm//web", "vm/default/"])
def test_a_place_has_three_parts_and_a_known_word(text: str) -> None:
    with pytest.raises(WebRefusal) as error:
        routes.place_of(text)
    assert error.value.status == 404


def test_a_place_names_kind_and_key() -> None:
    place = routes.place_of("stakater/default/web")
    assert (place.kind.kind, place.key.namespace, place.key.name, str(place)) == (
        "VirtualMachine",
        "default",
        "web",
        "stakater/default/web",
    )


async def _done(request: WebRequest) -> WebDone:
    return WebDone(text="done")


def test_a_path_that_is_served_otherwise_is_another_error() -> None:
    known = RouteTable((WebRoute("GET", "me", _done), WebRoute("POST", "plan", _done)))
    assert known.find("GET", "me")[0].pattern == "me"
    for method, path, status in (("POST", "me", 405), ("GET", "plan", 405), ("GET", "nothing", 404), ("HEAD", "me", 405)):
        with pytest.raises(WebRefusal) as error:
            known.find(method, path)
        assert error.value.status == status


def test_no_two_routes_answer_the_same_request() -> None:
    found = [(each.method, each.pattern) for each in table().routes]
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WebRefusal(421, "a"), 421),
        (Forbidden(403, StatusDetails(message="no")), 403),
        (MachineNotFound("a"), 404),
        (AmbiguousMachine("a"), 409),
        (Unreachable("a", sent=False), 502),
        (Transient("a"), 503),
        (Terminal("a"), 400),
        (OSError("a"), 502),
        (ValueError("a"), 500),
    ],
)
def test_the_status_of_errors(error: Exception, code: int) -> None:
    assert problems.body_of(error).code == code


def test_errors_keep_their_three_parts() -> None:
    error: PaddockError = Terminal("what", why="why", fix="fix")
    assert msgspec.json.decode(problems.encoded(problems.body_of(error))) == {
        "error": {"message": "what", "why": "why", "fix": "fix", "code": 400}
    }
    text = problems.body_of(KeyError("spec")).message
    assert text == "a defect of Paddock: KeyError: 'spec'"
