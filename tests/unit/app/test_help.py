"""The help of every command, in files that reviewers read: at most 80 columns, grouped, and never a surprise."""

import io
import re

import pytest

from paddock.app.commands import image, provider
from paddock.app.main import COMMANDS, GROUPS
from paddock.cli import main
from paddock.cli.commands import disk, nic, snap
from paddock.cli.console import Console
from tests.golden import Golden

NAMES = sorted(
    [
        *main.COMMANDS,
        *COMMANDS,
        "backup restore",
        *(f"disk {name}" for name in disk.COMMANDS),
        *(f"nic {name}" for name in nic.COMMANDS),
        *(f"snap {name}" for name in snap.COMMANDS),
        *(f"image {name}" for name in image.COMMANDS),
        *(f"provider {name}" for name in provider.COMMANDS),
    ]
)


def help_of(*words: str) -> str:
    out = io.BytesIO()
    assert main.run([*words], Console(out, io.BytesIO()), COMMANDS, GROUPS) == 0
    return out.getvalue().decode()


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_each_command(name: str, golden: Golden) -> None:
    text = help_of(*name.split(), "--help")
    assert max(map(len, text.splitlines())) <= 80
    golden(f"help/{name.replace(' ', '-')}.txt", text)


def test_the_list_of_commands(golden: Golden) -> None:
    text = help_of("help")
    assert max(map(len, text.splitlines())) <= 80
    golden("help/paddock.txt", text)
    assert sorted(name for names in GROUPS.values() for name in names) == sorted([*main.COMMANDS, *COMMANDS])


def test_the_servers_expert_options_wait_behind_help_all(golden: Golden) -> None:
    short, everything = help_of("up", "--help"), help_of("up", "--help-all")
    golden("help/up-all.txt", everything)
    expert = {"--oidc-issuer-url", "--max-body-bytes", "--audit-log-path", "--tls-cert-file", "--anonymous-auth"}
    assert not expert & options_in(short)
    assert expert <= options_in(everything)
    # `paddock apiserver` is for experts, and envtest reads its help.
    assert options_in(help_of("apiserver", "--help")) - {"--bare"} < options_in(everything)
    assert list(map(everything.index, ("--dir", "--network", "--pod-network", "--oidc-issuer-url"))) == sorted(
        map(everything.index, ("--dir", "--network", "--pod-network", "--oidc-issuer-url"))
    )


def options_in(text: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE))
