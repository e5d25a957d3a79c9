"""What is said of user data and network data, also of the hostile kind."""

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


@pytest.mark.parametrize("text", ["version: 1\nconfig: []\n", "version: 2\n", "network:\n  version: 2\n", "version: '1'\n"])
def test_network_data_with_a_version(text: str) -> None:
    assert cloudconfig.network_problem(text) == ""


@pytest.mark.parametrize(
    "text", ["", "version: 3\n", "ethernets: {}\n", "network: {version: [1]}\n", "- version: 1\n", "a: [", "[" * 100_000]
)
def test_network_data_without_one(text: str) -> None:
    assert cloudconfig.network_problem(text) != ""
