"""The findings about user data and network data, also of the hostile kind."""

import pytest

from paddock.meta import cloudconfig


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#cloud-config\nusers: []\n", ""),
        ("#cloud-config\n", ""),
        ("#!/bin/sh\n- no yaml: [", ""),
        ("#cloud-config\n- a\n", "line 2: must be a mapping, not a list"),
        ("#cloud-config\nhello\n", "line 2: must be a mapping, not a single value"),
        ("#cloud-config\na: [1\n", "line 3: "),
        ("#cloud-config\na: *nobody\n", "line 2: found undefined alias"),
        ("#cloud-config\na: \ud800\n", "not readable as text"),
        ("#cloud-config\n" + "[" * 1_000_000, "nested deeper than 200 levels"),
    ],
)
def test_user_data(text: str, words: str) -> None:
    said = cloudconfig.problem(text)
    assert said.startswith(words)
    assert bool(said) == bool(words)


@pytest.mark.spec("kubevirt", 126)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#cloud-config\npasword: x\n", ['line 2: cloud-init knows no "pasword"; did you mean "password"?']),
        ("#cloud-config\nuser: a\nusers: []\nrun_cmd: []\n", ['line 4: cloud-init knows no "run_cmd"; did you mean "runcmd"?']),
        # What looks like nothing that is known may be another program's.
        ("#cloud-config\nx-our-own-extension: 1\n1: 2\n[a]: b\n", []),
        ("#cloud-config\n", []),
        ("#!/bin/sh\npasword: x\n", []),
        ("pasword: x\n", [cloudconfig.NO_HEADER]),
        ("#cloud-config\n- a\n", ["not valid cloud-config: line 2: must be a mapping, not a list"]),
    ],
)
def test_keys_that_nobody_reads(text: str, said: list[str]) -> None:
    assert list(cloudconfig.user_data_problems(text)) == said


@pytest.mark.parametrize("text", ["version: 1\nconfig: []\n", "version: 2\n", "network:\n  version: 2\n", "version: '1'\n"])
def test_network_data_with_a_version(text: str) -> None:
    assert cloudconfig.network_problem(text) == ""


@pytest.mark.parametrize(
    "text", ["", "version: 3\n", "ethernets: {}\n", "network: {version: [1]}\n", "- version: 1\n", "a: [", "[" * 100_000]
)
def test_network_data_without_one(text: str) -> None:
    assert cloudconfig.network_problem(text) != ""
