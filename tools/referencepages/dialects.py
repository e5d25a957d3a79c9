"""docs/reference/dialects.md: one machine in every dialect, what each can say, and what each translation loses.

The manifests are those of `paddock run --dry-run`, and the losses those of `paddock convert`. `sidebyside.toml` holds the words.
"""

import io
import os
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import yaml

from paddock.app import main as server
from paddock.cli import main
from paddock.cli.console import Console
from paddock.fleet.documents.conversion import convert
from paddock.fleet.documents.inputobjects import gather
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.documents.rendering import RenderSummary
from paddock.kubernetes import catalog
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.schema.generate import reference
from paddock.kubernetes.schema.kind import AdmissionSettings
from tools.referencepages.tables import table

_WORDS = Path(__file__).with_name("sidebyside.toml")
_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID3TomWVaH/e6dd61FMRtOGRxsYGn5cNQqxXhlHgqST2 emma@acme"
_RUN = ("run", "debian-12", "-n", "web", "-c", "2", "-m", "2Gi", "-d", "20Gi")
_WIDTH = 140
_ABOUT = f"""# Five dialects side by side

{reference.HEADER}

Paddock takes machines in five dialects. This page shows one machine in each of them, which values only some of them can hold, and
what `paddock convert` reports as lost between each two. [The tutorial](../start/five-dialects.md) makes the machine five times.
"""
_MACHINE = f"""## The same machine

Debian 12, two processors, 2 GiB of memory, a disk of 20 GiB, an SSH key, on the pod network. Each block is what
`paddock {" ".join(_RUN)} -k id_ed25519.pub --dialect DIALECT --dry-run` prints.
"""
_CAN = """## What each can say

Each row adds one value to the machine above. *kept* means that `paddock convert` carries it and reports nothing further; otherwise
the cell has what it reports. Kubermatic's machine is KubeVirt's: it adds only how images are named. On this page the words of `convert`
use *Machine* for Vitistack's kind.
"""
_LOSSES = """## What a translation loses

The machine above, from the dialect of the row to that of the column: the number of losses that `paddock convert` reports. Most of
them are names of generated objects, labels and defaults; the lists below name them all. Look for the losses about the content of a
disk: a conversion to Stakater needs the DataSource that the loss names before the machine can start.
"""


class Dialect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dialect, and when to choose it."""

    name: str
    title: str
    when: str


class Ability(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that a machine of one dialect can hold, and the manifest that it refers to."""

    dialect: str
    say: str
    path: str
    value: Any
    beside: str = ""
    kind: str = ""


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dialect: tuple[Dialect, ...]
    can: tuple[Ability, ...]


@dataclass(frozen=True)
class Conversion:
    """The result of `paddock convert`. `losses` maps a field to the reason; a refusal has no objects."""

    objects: Sequence[Mapping[str, Any]]
    losses: Mapping[str, str]
    refused: bool


def words() -> tuple[Sequence[Dialect], Sequence[Ability]]:
    """Return the dialects and the abilities of the page."""
    read = msgspec.toml.decode(_WORDS.read_bytes(), type=_Words)
    return read.dialect, read.can


def machine(dialect: str) -> str:
    """Return the manifests of the page's machine in a dialect, as `paddock run` prints them."""
    out, err = io.BytesIO(), io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "id_ed25519.pub"
        key.write_text(_KEY + "\n")
        # Images that were built on this host would be preferred.
        with mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
            code = main.run([*_RUN, "-k", str(key), "--dialect", dialect, "--dry-run"], Console(out, err), server.COMMANDS)
    assert code == 0, err.getvalue()
    return out.getvalue().decode()


def converted(text: str, target: str) -> Conversion:
    """Convert manifests to a dialect, as `paddock convert` does."""
    console = Console(io.BytesIO(), io.BytesIO())
    reader = InputReader(console, AdmissionSettings())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "machine.yaml"
        file.write_text(text)
        gathered = gather(reader, [str(file)], console)
    if reader.unusable or gathered.refused:
        return Conversion((), {}, refused=True)
    outcome = RenderSummary()
    objects = convert(gathered, target, Rendering(), outcome)
    losses = {f"{each.of.partition('/')[0]} {each.field}".strip(): each.text for each in outcome.lost}
    return Conversion(objects, losses, refused=bool(outcome.failures))


def with_value(text: str, ability: Ability) -> str:
    """Return manifests whose object of the ability's kind, or the last one, has its value."""
    documents = [each for each in yaml.safe_load_all(f"{ability.beside}\n---\n{text}") if each]
    place: dict[str, Any] = next((each for each in documents if each["kind"] == ability.kind), documents[-1])
    *parents, last = ability.path.split(".")
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = ability.value
    return yaml.safe_dump_all(documents, sort_keys=False)


def verdict(ability: Ability, target: str, plain: str) -> str:
    """Say what becomes of an ability's value in another dialect: kept, or the losses that it adds."""
    before, after = converted(plain, target), converted(with_value(plain, ability), target)
    if after.refused:
        return "refused"
    added = [text for field, text in after.losses.items() if field not in before.losses]
    if added:
        return f"lost: {added[0].partition(';')[0]}"
    return "lost" if after.objects == before.objects else "kept"


def page() -> str:
    """Return the page."""
    dialects, abilities = words()
    machines = {each.name: machine(each.name) for each in dialects}
    parts = (
        [_ABOUT],
        _choice(dialects),
        [_MACHINE],
        *(_manifest(each, machines[each.name]) for each in dialects),
        [_CAN],
        _abilities(dialects, abilities, machines),
        _translations(dialects, machines),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def _choice(dialects: Sequence[Dialect]) -> Iterator[str]:
    yield "## Which one to write\n"
    kinds = catalog.every()
    rows = []
    for each in dialects:
        named = sorted({kind.kind for kind in kinds if kind.dialect == each.name})
        groups = sorted({kind.group for kind in kinds if kind.dialect == each.name})
        rows.append((each.title, f"{each.when}", ", ".join(f"`{group}`" for group in groups), str(len(named))))
    yield from table(("dialect", "write it when", "groups", "kinds"), rows)


def _manifest(dialect: Dialect, text: str) -> Iterator[str]:
    yield f"### {dialect.title}\n"
    yield f"```yaml\n{text}```\n"


def _abilities(dialects: Sequence[Dialect], abilities: Sequence[Ability], machines: Mapping[str, str]) -> Iterator[str]:
    titles = {each.name: each.title for each in dialects}
    rows = []
    for ability in abilities:
        cells = ["" if name == ability.dialect else verdict(ability, name, machines[ability.dialect]) for name in titles]
        rows.append((titles[ability.dialect], f"{ability.say}: `{ability.path}`", *cells))
    yield from table(("dialect", "can say", *(f"in {title}" for title in titles.values())), rows)


def _translations(dialects: Sequence[Dialect], machines: Mapping[str, str]) -> Iterator[str]:
    made = {(a.name, b.name): converted(machines[a.name], b.name).losses for a in dialects for b in dialects if a != b}
    yield _LOSSES
    rows = [(a.title, *("" if a == b else str(len(made[a.name, b.name])) for b in dialects)) for a in dialects]
    yield from table(("from, to", *(each.title for each in dialects)), rows)
    for a in dialects:
        for b in dialects:
            if losses := made.get((a.name, b.name)):
                yield f"### From {a.title} to {b.title}\n"
                yield from (
                    textwrap.fill(f"- `{field}`: {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
                    for field, text in losses.items()
                )
                yield ""
