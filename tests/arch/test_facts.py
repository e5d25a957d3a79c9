"""Facts that two places tell are the same: figures, tables, examples, and reasons why an item is not met."""

import ast
import importlib
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from paddock.app.doctor import acceleration
from paddock.app.options.settings import DEFAULT_PORT
from paddock.engine.host import capacity
from tests.arch.test_docs import DOCUMENTS, ROOT
from tests.kit.pages import guides
from tools.referencepages import figures
from tools.referencepages.figures import Figure

# A row of a page that quotes figures, and the figure of tools/bench/results.toml that it quotes.
QUOTED: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "memory of everything, idle": "idle, memory of everything",
        "a machine, from apply to Running": "apply to Running",
        "API server with 10,000 machines, memory": "resident, all objects",
        "API server, start": "start, empty",
    },
    "docs/about/comparison.md": {
        "memory, empty": "resident, empty",
        "memory with 10,000 VirtualMachines": "resident, all objects",
        "start, empty": "start, empty",
        "creates on 16 connections": "creates on 16 connections",
        "CPU of a create": "CPU of a create on 16",
        "list of 10,000": "list of all",
        "a machine, from apply to Running": "apply to Running",
        "CPU until Running": "CPU until Running",
        "memory of a machine beside QEMU's": "memory of a machine beside QEMU's",
        "memory of everything, idle": "idle, memory of everything",
        "CPU of everything, idle": "idle, CPU of everything",
    },
}
# What a reason says is missing, by the pattern of the files that would prove the contrary.
ABSENT: Mapping[tuple[str, str], str] = {
    ("kube-api", "128"): "tests/reference/**/*argo*",
    ("kube-api", "129"): "tests/reference/**/*headlamp*",
}
_NUMBER = re.compile(r"[\d,]*\d(?:\.\d+)?")
_PATH = re.compile(r"\b(?:tests|deploy|docs|src)/[\w./-]*\w")
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def tables(text: str) -> Iterator[list[str]]:
    """Yield the tables of a page, each as its lines, without what stands in fenced code."""
    plain = re.sub(r"^( *)(```|~~~).*?^ *\2", "", text, flags=re.MULTILINE | re.DOTALL)
    for match in re.finditer(r"(?:^ *\|.*\n?)+", plain, re.MULTILINE):
        yield match[0].splitlines()


def uneven(text: str) -> list[str]:
    """Return the rows that do not have as many cells as the head of their table."""
    without = re.compile(r"`[^`\n]*`")
    return [row for table in tables(text) for row in table if len(cells(without.sub("", row))) != len(cells(without.sub("", table[0])))]


def measured(page: str) -> dict[str, list[str]]:
    rows = [cells(line) for line in page.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in reversed(rows)}


def amount(text: str) -> str:
    found = _NUMBER.search(text)
    assert found is not None, text
    return found[0].replace(",", "")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_row_of_a_table_has_the_cells_of_its_head(document: Path) -> None:
    assert uneven(document.read_text(encoding="utf-8")) == []


def test_a_short_row_is_seen() -> None:
    assert uneven("| a | b |\n| --- | --- |\n| `x | y` | 2 |\n| c |\n") == ["| c |"]


RESULTS: Mapping[str, Figure] = {figure.name: figure for run in figures.runs() for figure in run.figure}


def is_quoted(told: Sequence[str], figure: Figure) -> bool:
    """Return True if the first two cells are the figure, rounded as they are."""
    pairs = zip(told, (figure.paddock, figure.peer), strict=False)
    return all(value is not None and float(amount(cell)) == round(value, len(amount(cell).partition(".")[2])) for cell, value in pairs)


@pytest.mark.parametrize(("page", "row"), [(page, row) for page, rows in QUOTED.items() for row in rows])
def test_a_quoted_figure_is_that_of_the_results(page: str, row: str) -> None:
    told, figure = measured(text_of(page))[row], RESULTS[QUOTED[page][row]]
    assert is_quoted(told, figure), (told, figure)
    assert figure.quoted


def test_the_quoted_figures_are_all_that_there_are() -> None:
    tables_of_readme = [[cells(row)[0] for row in table[2:]] for table in tables(text_of("README.md"))]
    assert list(QUOTED["README.md"]) in tables_of_readme


def test_the_page_of_measurements_has_each_figure_once() -> None:
    assert len(RESULTS) == sum(len(run.figure) for run in figures.runs())
    told = measured(figures.measurements())
    assert [name for name, figure in RESULTS.items() if not is_quoted(told[name][:1], figure)] == []


def test_another_figure_is_seen() -> None:
    figure = Figure("a", "s", 0.291, 2.144)
    assert is_quoted(["0.29 s", "2.1 s"], figure)
    assert not is_quoted(["0.29 s", "2.2 s"], figure)


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("below", "s", 5, target="<= 5 s"), "met"),
        (Figure("above", "s", 5.1, target="<= 5 s"), "**missed**"),
        (Figure("a part", "ms", 1, 15, "<= 1/15"), "met"),
        (Figure("too large a part", "ms", 1.1, 15, "<= 1/15"), "**missed**"),
        (Figure("times", "/s", 59, 10, ">= 6x"), "**missed**"),
        (Figure("a ratio", "x", 1.2, target="<= 1.1 x"), "**missed**"),
        (Figure("none", "x", 1.2), ""),
    ],
    ids=lambda value: value.name if isinstance(value, Figure) else None,
)
def test_a_target_is_met_or_missed(figure: Figure, verdict: str) -> None:
    assert figure.verdict() == verdict


@pytest.mark.spec("kubevirt", 102, "p50 and p95 published with hardware", "memory per VM and of the engine published")
def test_the_page_of_measurements_says_how_a_hundred_machines_start() -> None:
    page = figures.measurements()
    section = page.partition("\n## A whole host")[2].partition("\n## ")[0]
    assert "100 VirtualMachineInstances 100 ms apart" in section
    for figure in ("100 VMIs, creation to Running, p50", "100 VMIs, creation to Running, p95", "Paddock's own memory for a running VM"):
        assert re.search(rf"^\| {re.escape(figure)} \| [\d.]+ (s|MiB) \| <= \d+ (s|MiB) \|", section, re.MULTILINE), figure
    assert re.search(r"An empty Paddock takes \d+ MB", section)
    assert re.search(r"with \d+ processors \([^)]+\), \d+ GB", section)


def test_the_guide_names_the_port_of_the_server() -> None:
    assert f'"127.0.0.1:{DEFAULT_PORT}"' in text_of("docs/run/metrics.md")
    assert [page.name for page in guides() if "127.0.0.1:6443" in page.read_text(encoding="utf-8")] == []


def test_one_figure_tells_how_slow_emulation_is() -> None:
    pages = {page: re.findall(r"\w+ to \w+ times slower|\w+ times slower", page.read_text(encoding="utf-8")) for page in guides()}
    told = {figure for figures in pages.values() for figure in figures if "thousand" not in figure}
    assert told == {"five to thirty times slower"}
    assert "five to thirty times slower" in acceleration._EMULATED


def test_the_page_of_requirements_has_the_overhead_that_the_engine_counts() -> None:
    page, mib = text_of("docs/run/requirements.md"), 1 << 20
    parts = {
        "{} MiB, 2 MiB for each vCPU and each disk": capacity._QEMU["kvm"],
        "{} MiB in place of 32": capacity._QEMU["tcg"],
        "{} MiB for a display": capacity._VIDEO,
        "{} MiB for a TPM": capacity._TPM,
        "{} MiB for a shared directory": capacity._SHARE,
        "{} MiB for each network interface": capacity._CARD,
    }
    assert [text for text, size in parts.items() if text.format(size // mib) not in page] == []
    assert capacity._VCPU == capacity._DISK == 2 * mib
    each = (2 << 30) + capacity._QEMU["kvm"] + 4 * capacity._VCPU + capacity._CARD + (2 << 30) // 512
    assert (f"2 GiB + {(each >> 20) - 2048} MiB" in page, capacity.Room.of(32 << 30).memory // each) == (True, 14)


def test_the_first_pages_name_the_hosts_that_were_run() -> None:
    run = set(re.findall(r"^\| Debian (\d+)", text_of("docs/run/hosts.md"), re.MULTILINE))
    for page in ("README.md", "docs/start/quickstart.md"):
        assert f"You need Debian {' or '.join(sorted(run))} on amd64" in " ".join(text_of(page).split()), page


def test_commands_that_need_no_server_are_on_their_page() -> None:
    words = text_of("tests/unit/app/help/paddock.txt")
    section = words.partition("manifests (no server needed):")[2].partition("\n\n")[0]
    listed = {line.split()[0] for line in section.splitlines() if re.match(r"  \w", line)}
    table = set(re.findall(r"^\| `(\w+)` \|", text_of("docs/manifests/cli.md"), re.MULTILINE))
    assert listed, "the help has a section of commands without a server"
    assert listed <= table


@pytest.mark.parametrize("page", ["docs/contribute/controllers.md"])
def test_python_of_the_contributors_pages_is_imported(page: str) -> None:
    for code in _PYTHON.findall(text_of(page)):
        names: dict[str, object] = {}
        exec(compile(code, page, "exec"), names)
        missing = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)} - names.keys() - _local(code)
        assert {name for name in missing if not hasattr(importlib.import_module("builtins"), name)} == set()


def _local(code: str) -> set[str]:
    tree = ast.parse(code)
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return assigned | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def test_reasons_name_what_there_is() -> None:
    reasons = [(spec, key, text) for spec, table in tomllib.loads(text_of("docs/spec/unmet.toml")).items() for key, text in table.items()]
    named = {(spec, key, path) for spec, key, text in reasons for path in _PATH.findall(text)}
    assert {each for each in named if not (ROOT / each[2]).exists()} == set()


@pytest.mark.parametrize("item", ABSENT)
def test_what_a_reason_misses_is_missing(item: tuple[str, str]) -> None:
    spec, key = item
    tables = tomllib.loads(text_of("docs/spec/unmet.toml"))
    if key in tables[spec]:
        files = subprocess.run(["git", "ls-files", f":(glob){ABSENT[item]}"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert files.stdout == ""
