"""The table of requests, and what a machine makes of any sequence of them, beside a small model."""

from dataclasses import dataclass
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.observation import Observation, Paused, Phase
from paddock.engine.machine.requests import RULES, STATES, Already, Go, Refuse, State, Verb, admit, judge, state


@pytest.mark.parametrize("verb", Verb)
def test_every_state_has_a_rule_and_every_refusal_a_way_out(verb: Verb) -> None:
    assert set(RULES[verb]) == set(STATES) == set(get_args(State))
    for rule in RULES[verb].values():
        if isinstance(rule, Refuse):
            assert rule.reason.isalpha() and rule.why and rule.fix


def test_the_table_reads_as_its_module_says() -> None:
    text = __import__("paddock.engine.machine.requests", fromlist=["x"]).__doc__ or ""
    words = {Go: "go", Already: "already", Refuse: "refuse"}
    rows = [line.split() for line in text.splitlines() if line.split()[:1] and line.split()[0] in Verb.__members__]
    assert len(rows) == len(Verb)
    for row in rows:
        assert [words[type(RULES[Verb[row[0]]][one])] for one in STATES] == row[1 : 1 + len(STATES)], row[0]


def test_a_refusal_names_machine_action_and_reason() -> None:
    with pytest.raises(RequestRefused) as caught:
        admit(Verb.CHANGE, Observation(), "a", "plug disk x into")
    assert caught.value.reason == "NotRunning"
    assert str(caught.value) == "cannot plug disk x into machine a: it does not run; start it first"


@dataclass
class Model:
    """A machine as somebody would explain it: it runs or not, it may be paused, a stop is final."""

    process: bool = False
    up: bool = False
    paused: bool = False
    stopping: bool = False
    suspended: bool = False
    seen: bool = False
    # its guest goes to another host: whether it is still to come back, and whether it is gone for good
    offered: bool = False
    moved: bool = False

    @property
    def observed(self) -> Observation:
        if self.offered or self.moved:
            return Observation("stopping" if self.process else "ended", handed="decided" if self.moved else "offered")
        if self.suspended:
            return Observation("suspended")
        if not self.process:
            return Observation("ended" if self.seen else "defined")
        if self.stopping:
            return Observation("stopping")
        if not self.up:
            return Observation("starting")
        return Observation("running", "user" if self.paused else "")

    def expected(self, verb: Verb) -> type:
        if self.moved:
            return {Verb.STOP: Already, Verb.SEND: Already, Verb.FORGET: Go}.get(verb, Refuse)
        if self.offered:
            return Already if verb is Verb.SEND else Refuse
        if self.suspended:
            return {Verb.START: Go, Verb.STOP: Go, Verb.FORGET: Go, Verb.SUSPEND: Already, Verb.RECEIVE: Already}.get(verb, Refuse)
        if verb in (Verb.RECEIVE, Verb.ARRIVE):
            return Refuse if self.process or self.seen else Go
        if verb is Verb.START:
            return (Refuse if self.stopping else Already) if self.process else Go
        if verb is Verb.STOP:
            return Go if self.process else Already
        if verb is Verb.FORGET:
            return Refuse if self.process else Go
        if not (self.process and (self.up or self.stopping)):
            return Refuse
        if self.stopping:
            return {Verb.LOOK: Go, Verb.PRESS: Already}.get(verb, Refuse)
        special: dict[Verb, type] = {Verb.PAUSE: Already if self.paused else Go, Verb.RESUME: Go if self.paused else Already}
        special |= dict.fromkeys((Verb.PRESS, Verb.RENEW, Verb.SEND), Refuse if self.paused else Go)
        return special.get(verb, Go)

    def perform(self, verb: Verb) -> None:
        if verb is Verb.START:
            self.process, self.up, self.paused, self.suspended, self.seen = True, False, False, False, True
        elif verb is Verb.RECEIVE:
            self.suspended = self.seen = True
        elif verb is Verb.SUSPEND:
            self.process, self.up, self.paused, self.suspended = False, False, False, True
        elif verb is Verb.STOP:
            self.stopping, self.suspended = self.process, False
        elif verb is Verb.FORGET:
            self.suspended = False
        elif verb is Verb.SEND:
            self.offered = True
        elif verb is Verb.ARRIVE:
            self.process = self.seen = True
        elif verb in (Verb.PAUSE, Verb.RESUME):
            self.paused = verb is Verb.PAUSE

    def happen(self, what: str) -> None:
        if what == "up" and self.process and not self.stopping:
            self.up = True
        elif what == "taken" and self.offered:
            self.offered, self.moved, self.process = False, True, False
        elif what == "dropped" and self.offered:
            self.offered = False
        elif what == "end":
            self.process = self.up = self.paused = self.stopping = False


@given(st.lists(st.sampled_from([*Verb, "up", "end", "taken", "dropped"]), max_size=30))
def test_any_sequence_is_answered_as_the_model_expects(steps: list[Verb | str]) -> None:
    model = Model()
    for step in steps:
        if isinstance(step, str):
            model.happen(step)
            continue
        rule = judge(step, model.observed)
        assert type(rule) is model.expected(step), (step, model)
        if isinstance(rule, Go):
            model.perform(step)


def test_paused_counts_only_while_it_runs() -> None:
    for phase in get_args(Phase):
        for paused in get_args(Paused):
            expected = "paused" if phase == "running" and paused else phase
            assert state(Observation(phase, paused)) == expected
