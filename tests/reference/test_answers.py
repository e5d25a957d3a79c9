"""Recorded answers: a known question starts no server, a new or changed one does, and what was not asked is forgotten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reference import answers as recorded
from tests.reference.answers import Answers
from tests.reference.client import Answer, Api, Json, Resource
from tests.reference.verdict import Complaint, Question, Stored, Verdict

MACHINES = Resource("example.com", "v1", "machines", "Machine", namespaced=True)
THING: Json = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"size": 1}}
REFUSED = Answer(422, {"details": {"causes": [{"field": "spec.size", "reason": "FieldValueInvalid", "message": "too small"}]}})


class Server(Api):
    """Refuses a size of 0, and makes up a uid for each object. What was deleted is gone at once."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> Answer:
        self.requests.append((method, path))
        if method == "GET":
            return Answer(404, {})
        if method != "DELETE" and body["spec"]["size"] == 0:
            return REFUSED
        made = {**(body or {}), "metadata": {**(body or THING)["metadata"], "uid": str(len(self.requests)), "resourceVersion": "7"}}
        return Answer(201, made)


def refuse() -> Api:
    raise AssertionError("a server was started")


@pytest.fixture
def open_answers(tmp_path: Path) -> Callable[[Callable[[], Api]], Answers]:
    return lambda live: Answers(tmp_path / "answers" / "x.txt", live)


def sized(size: int, **more: Any) -> Question:
    return Question({**THING, "spec": {"size": size}}, MACHINES, **more)


def test_the_same_questions_start_no_server(open_answers: Callable[[Callable[[], Api]], Answers]) -> None:
    questions = [sized(1), sized(0), sized(2, old=THING), sized(1)]
    first = open_answers(Server)
    said = list(first.ask_all(questions))
    assert said[0] == Verdict(True) and said[1] == Verdict(False, (Complaint("spec.size", "FieldValueInvalid", "too small"),))
    assert first.anew == 3
    first.write(whole=True)
    again = open_answers(refuse)
    assert list(again.ask_all(questions)) == said and again.anew == 0


def test_a_stored_object_is_remembered_without_what_a_server_makes_up(open_answers: Callable[[Callable[[], Api]], Answers]) -> None:
    first = open_answers(Server)
    base = first.stored(MACHINES, THING)
    assert base.thing == THING and base.path.endswith("/namespaces/b/machines/a")
    status = Question({**THING, "status": {"ready": True}}, MACHINES, status_of=base)
    assert first.ask(status).accepted
    first.write(whole=True)
    again = open_answers(refuse)
    assert again.stored(MACHINES, THING) == base and again.ask(status).accepted


def test_a_status_is_written_to_an_object_that_is_stored_meanwhile(open_answers: Callable[[Callable[[], Api]], Answers]) -> None:
    server = Server()
    answers = open_answers(lambda: server)
    base = Stored("/gone", THING)
    statuses = [Question({**THING, "status": {"ready": ready}}, MACHINES, status_of=base) for ready in (True, False)]
    assert len(list(answers.ask_all(statuses))) == 2
    one = "/apis/example.com/v1/namespaces/b/machines"
    assert sorted(server.requests) == [
        ("DELETE", f"{one}/a"),
        ("GET", f"{one}/a"),
        ("POST", one),
        ("PUT", f"{one}/a/status"),
        ("PUT", f"{one}/a/status"),
    ]


@pytest.mark.parametrize("changed", ["question", "release", "definition"])
def test_a_change_asks_anew(open_answers: Callable[[Callable[[], Api]], Answers], monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    first = open_answers(Server)
    first.ask(sized(1))
    first.write(whole=True)
    if changed == "release":
        monkeypatch.setattr(recorded, "_release", lambda: "another")
    if changed == "definition":
        monkeypatch.setattr(recorded, "_definition", lambda resource: "another")
    again = open_answers(Server)
    again.ask(sized(2 if changed == "question" else 1))
    assert again.anew == 1


@pytest.mark.parametrize(("whole", "anew"), [(True, 1), (False, 0)])
def test_what_is_not_asked_any_more_is_forgotten_by_a_whole_run(
    open_answers: Callable[[Callable[[], Api]], Answers], whole: bool, anew: int
) -> None:
    first = open_answers(Server)
    list(first.ask_all([sized(1), sized(2)]))
    first.write(whole=True)
    second = open_answers(refuse)
    second.ask(sized(2))
    second.write(whole=whole)
    third = open_answers(Server)
    list(third.ask_all([sized(1), sized(2)]))
    assert third.anew == anew
