"""The findings about user data and network data, also of the hostile kind."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta import cloudconfig


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
        (
            "#cloud-config\nusers:\n- name: me\n  ssh_authorised_keys: [a]\n  passwd: x\n",
            ['line 4: cloud-init knows no "ssh_authorised_keys" in users; did you mean "ssh_authorized_keys"?'],
        ),
        ("#cloud-config\nruncmd: echo\n", ["line 2: runcmd must be a list, not a single value"]),
        ("#cloud-config\nwrite_files: [a]\n", ["line 2: an entry of write_files must be a mapping, not a single value"]),
        ("#cloud-config\nruncmd:\npackages: [a, [b, c]]\nbootcmd: [[a], b]\n", []),
        ("#cloud-config\nusers: &a [*a, {name: &n [*n]}]\n", ["line 2: name must be a single value, not a list"]),
        # Ways in: keys, passwords, the default user's; nobody logs in as a daemon.
        ("#cloud-config\nusers:\n- default\n- name: me\n", ['line 4: nobody can log in as "me": it has no SSH key and no password']),
        ("#cloud-config\nusers: [{name: me, ssh_authorized_keys: [a]}, {name: you, passwd: x}, {name: d, system: true}]\n", []),
        ("#cloud-config\nusers: [{name: d, shell: /usr/sbin/nologin}]\n", []),
        ("#cloud-config\nusers: [{name: me}]\nchpasswd: {users: [{name: me, password: x}]}\n", []),
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


def test_the_first_slips_are_enough() -> None:
    text = "#cloud-config\n" + "".join(f"run_cmd{number}: 1\n" for number in range(9)) * 9
    assert len(list(cloudconfig.user_data_problems(text))) == 20


@pytest.mark.parametrize("text", ["version: 1\nconfig: []\n", "version: 2\n", "network:\n  version: 2\n", "version: '1'\n"])
def test_network_data_with_a_version(text: str) -> None:
    assert cloudconfig.network_problem(text) == ""


@pytest.mark.parametrize(
    "text", ["", "version: 3\n", "ethernets: {}\n", "network: {version: [1]}\n", "- version: 1\n", "a: [", "[" * 100_000]
)
def test_network_data_without_one(text: str) -> None:
    assert cloudconfig.network_problem(text) != ""


@given(st.text(alphabet="[]{}-?: \nab,&*'\"|>!#\t", max_size=60))
def test_no_document_is_nested_deeper_than_it_has_openings(text: str) -> None:
    """So only a text with many of them has its depth counted before it is composed."""
    depth = deepest = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            deepest = max(depth, deepest)
    except yaml.YAMLError:
        pass
    assert deepest <= sum(map(text.count, cloudconfig._OPENINGS))
