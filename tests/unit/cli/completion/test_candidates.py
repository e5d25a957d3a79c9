"""The words that may come next on a command line, without a shell."""

from collections.abc import Iterable, Sequence

import pytest

from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.arguments import KnownNames
from paddock.cli.commandtree import walk
from paddock.cli.completion import names
from paddock.cli.completion.candidates import Candidate, Directive, NamesQuery, complete, lines, read
from paddock.kubernetes import catalog

TREE = read()


def lookup(query: NamesQuery) -> Iterable[Candidate]:
    return [Candidate(f"{query.names}-{begun}") for begun in (query.begun or "?",)]


def words(line: str) -> list[str]:
    return [candidate.word for candidate in complete(line.split(" "), TREE, lookup).candidates]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("val", ["validate"]),
        ("help val", ["validate"]),
        ("help validate ", []),
        ("image pu", ["pull", "push"]),
        ("backup rest", ["restore"]),
        ("backup --", ["--help", "--dir"]),
        ("image nonsense ", []),
        ("nonsense ", []),
        ("up --network ", ["auto", "routed", "rootless", "user"]),
        ("up --network=r", ["--network=routed", "--network=rootless"]),
        # the options for experts, too
        ("up --oidc-issuer", ["--oidc-issuer-url"]),
        ("up --in-memory --in-mem", []),
        ("up --pool a=b --poo", ["--pool"]),
        ("up --detach=", []),
        ("ctx ", ["ls", "add", "rm"]),
        ("ctx add ", []),
        ("image build ", ["tiny", "debian-12"]),
        ("why ", ["objects-?"]),
        ("why web --context k", ["contexts-k"]),
        ("why --context k w", ["objects-w"]),
        ("renew a b c", ["machines-c"]),
        ("why -- -n", ["objects--n"]),
        ("why -", ["--help", "--namespace", "--kubeconfig", "--context", "--verbose", "--output"]),
    ],
)
def test_candidates(line: str, found: Sequence[str]) -> None:
    assert words(line) == found


@pytest.mark.parametrize(
    ("line", "directive"),
    [
        ("up --dir ", Directive.ONLY_DIRECTORIES),
        ("validate ", Directive.DEFAULT),
        ("validate -f a.yaml b", Directive.DEFAULT),
        ("why --kubeconfig=", Directive.DEFAULT),
        ("why ", Directive.NO_FILES),
        ("backup a", Directive.DEFAULT),
    ],
)
def test_paths(line: str, directive: Directive) -> None:
    found = complete(line.split(" "), TREE, lookup)
    assert found.directive == directive
    if directive is not Directive.NO_FILES:
        assert not found.candidates


def test_the_answer_is_cobras() -> None:
    assert lines(complete(["image", "pu"], TREE, lookup)) == (
        "pull\tFetch an image into the library\npush\tUpload an image to a registry, as a container disk\n:4\n"
    )


def test_every_option_of_every_command_completes() -> None:
    for entry in walk(main.every(COMMANDS)):
        if not entry.verbs():
            shown = {each.word for each in complete([*entry.words, "--"], TREE, lookup).candidates}
            declared = {name for action in entry.parser()._actions for name in action.option_strings if name.startswith("--")}
            assert shown == declared, entry.name


def test_kinds_and_their_places() -> None:
    declared = {(f"{kind.group}/{version.name}", kind.plural) for kind in catalog.every() for version in kind.versions}
    assert {*names.machines(), *names.providers()} <= declared
    assert Candidate("virtualmachines", "VirtualMachine of kubevirt") in names.lookup(NamesQuery(KnownNames.KINDS, "virtualmach", [""]))


def test_without_a_server_nothing_is_found_and_nobody_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none")
    monkeypatch.setenv("PADDOCK_DIR", f"{tmp_path}/nowhere")
    for known in (KnownNames.MACHINES, KnownNames.CONTEXTS, KnownNames.OBJECTS, KnownNames.PROVIDERS, KnownNames.NAMESPACES):
        assert list(names.lookup(NamesQuery(known, "", ["why", ""]))) == []


def test_the_server_of_the_command_line_is_asked() -> None:
    given = names.server_options(["why", "--context", "a", "-n", "b", "--kubeconfig=c", "x", ""])
    assert (given.context, given.namespace, str(given.kubeconfig)) == ("a", "b", "c")
    assert names.server_options(["why", "-n"]).namespace == ""
