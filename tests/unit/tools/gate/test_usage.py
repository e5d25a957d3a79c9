"""The files that a test module uses, over made-up repositories."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.gate import usage
from tools.gate.plugin import commit_of, repository_files

MODULE = "tests/host/machines/test_life.py"
FILES = {
    MODULE: "from tests.host.machines.booting import boot\nfrom paddock.base import clock\n",
    "tests/host/machines/booting.py": "import tests.kit.servers.imageserver\n",
    "tests/host/machines/test_other.py": "",
    "tests/host/machines/guest.s": "",
    "tests/host/fronts/test_stakater.py": "KIND = 'Stakater'\n",
    "tests/host/conftest.py": "",
    "tests/host/passed.txt": "",
    "tests/host/results.json": "",
    "tests/kit/servers/facts.json": "",
    "tests/kit/servers/imageserver.py": "",
    "tests/kit/servers/webhooks.py": "",
    "tests/conftest.py": "from tools.gate import usage\n",
    "tests/unit/base/test_clock.py": "",
    "tests/reference/server.py": "",
    "src/paddock/base/clock.py": "from paddock.kubevirt import machine\n",
    "src/paddock/base/unused.py": "",
    "src/paddock/dialects/stakater/machine.py": "",
    "src/paddock/dialects/stakater/plan.py": "",
    "src/paddock/kubevirt/machine.py": "",
    "tools/gate/usage.py": "",
    "tools/kubevirtsupport/table.py": "",
    "tools/setup.sh": "",
    "docs/manifests/cli.md": "",
    "README.md": "",
    "new/thing.txt": "",
}
USED = [
    "new/thing.txt",
    "src/paddock/base/clock.py",
    "src/paddock/kubevirt/machine.py",
    "tests/conftest.py",
    "tests/host/conftest.py",
    "tests/host/machines/booting.py",
    "tests/host/machines/guest.s",
    MODULE,
    "tests/kit/servers/facts.json",
    "tests/kit/servers/imageserver.py",
    "tools/setup.sh",
]


def reading(files: dict[str, str]) -> Callable[[str], bytes]:
    return lambda file: files[file].encode()


def test_documents_other_suites_other_modules_and_unnamed_dialects_are_not_used() -> None:
    assert usage.files_used(MODULE, FILES, reading(FILES)) == USED


@pytest.mark.parametrize("where", [MODULE, "tests/host/machines/booting.py", "tests/kit/servers/imageserver.py", "tests/host/conftest.py"])
def test_a_dialect_that_is_named_anywhere_is_used(where: str) -> None:
    files = {**FILES, where: f"{FILES[where]}# STAKATER\n"}
    files["src/paddock/base/clock.py"] = "import paddock.dialects.stakater.plan\nimport paddock.dialects.stakater.machine\n"
    found = usage.files_used(MODULE, files, reading(files))
    assert {"src/paddock/dialects/stakater/machine.py", "src/paddock/dialects/stakater/plan.py"} <= set(found)


def test_what_a_module_imports_of_other_suites_is_used() -> None:
    files = {**FILES, MODULE: "from tests.unit.base import test_clock\nfrom tests.reference.server import running\n"}
    found = usage.files_used(MODULE, files, reading(files))
    assert {"tests/unit/base/test_clock.py", "tests/reference/server.py"} <= set(found)


@pytest.mark.parametrize("file", sorted(FILES))
def test_the_digest_changes_with_the_files_that_are_used_and_no_others(file: str) -> None:
    before = usage.digest(MODULE, FILES, reading(FILES))
    changed = {**FILES, file: f"{FILES[file]}# changed\n"}
    assert (usage.digest(MODULE, changed, reading(changed)) != before) == (file in USED)


@pytest.mark.parametrize("file", USED)
def test_the_digest_changes_when_a_file_goes(file: str) -> None:
    if file == MODULE:
        return
    left = {name: text for name, text in FILES.items() if name != file}
    assert usage.digest(MODULE, left, reading(FILES)) != usage.digest(MODULE, FILES, reading(FILES))


# --- files beside the source ------------------------------------------------------------------------------------------

BESIDE = {
    "tests/host/kvm/bare.py": "",
    "tests/host/kvm/rom.bin": "",
    "tests/host/programs/echo.go": "",
    "tests/host/console/driver.py": "",
    "tests/kit/proxmox/server.py": "",
    "tests/kit/proxmox/answers.json": "",
    "tests/other.py": "",
    "tests/other.toml": "",
    "tools/pages/commands.py": "",
    "api/crds/a.yaml": "",
    "web/src/main.ts": "",
    "setup.py": "",
}
ALWAYS = {"tests/host/programs/echo.go", "tests/other.toml", "setup.py"}


@pytest.mark.parametrize(
    ("test", "more"),
    [
        ("", set()),
        ("from tests.host.kvm.bare import boot\n", {"tests/host/kvm/bare.py", "tests/host/kvm/rom.bin"}),
        ("import tests.kit.proxmox.server\n", {"tests/kit/proxmox/server.py", "tests/kit/proxmox/answers.json"}),
        ("import tests.other\n", {"tests/other.py"}),
        ('DRIVER = "console/driver.py"\n', {"tests/host/console/driver.py"}),
        ('FOLDER = HERE / "console"\n', {"tests/host/console/driver.py"}),
        ('CRDS = ROOT / "api" / "crds"\n', {"api/crds/a.yaml"}),
        ('read(ROOT / "api/crds/a.yaml")\n', {"api/crds/a.yaml"}),
        ('get("/api/v1")\n', set()),
    ],
)
def test_files_count_where_their_folder_is_imported_from_or_named(test: str, more: set[str]) -> None:
    files = {**FILES, **BESIDE, MODULE: test, "tests/host/conftest.py": ""}
    assert set(usage.files_used(MODULE, files, reading(files))) & set(BESIDE) == ALWAYS | more


# --- the source ----------------------------------------------------------------------------------------------------

SOURCE = {
    "src/paddock/__init__.py": "",
    "src/paddock/base/__init__.py": "",
    "src/paddock/base/clock.py": "from paddock.base import ticks\n",
    "src/paddock/base/ticks.py": "",
    "src/paddock/base/zones.toml": "",
    "src/paddock/cli/__init__.py": "",
    "src/paddock/cli/main.py": 'import_module(f"paddock.cli.commands.{name}")\n',
    "src/paddock/cli/rules/rules.toml": "",
    "src/paddock/cli/commands/why.py": "def run():\n    import paddock.kubevirt.plan.causes\n",
    "src/paddock/kubevirt/plan/causes.py": "",
    "src/paddock/dialects/stakater/plan.py": "",
}


def used_of(test: str, more: dict[str, str] | None = None) -> set[str]:
    files = {MODULE: test, **SOURCE, **(more or {})}
    found = usage.files_used(MODULE, files, reading(files))
    return {each.removeprefix("src/paddock/") for each in found if each.startswith("src/")}


def test_a_test_uses_what_it_imports_of_the_source_and_what_that_imports() -> None:
    assert used_of("from paddock.base import clock\n") == {
        "__init__.py",
        "base/__init__.py",
        "base/clock.py",
        "base/ticks.py",
        "base/zones.toml",
    }


def test_what_is_imported_by_name_or_in_a_function_is_used_and_so_are_files_below_it() -> None:
    found = used_of("from paddock.cli.main import main\n")
    assert {"cli/main.py", "cli/commands/why.py", "kubevirt/plan/causes.py", "cli/rules/rules.toml"} <= found
    assert not found & {"base/clock.py", "base/zones.toml"}


@pytest.mark.parametrize(
    "start", ['spawn([sys.executable, "-m", "paddock.app", "up"])', 'run([".venv/bin/paddock"])', 'run(["paddock", "up"])', "# make demo"]
)
def test_a_test_that_starts_the_program_uses_all_of_the_source(start: str) -> None:
    assert used_of(start) == {each.removeprefix("src/paddock/") for each in SOURCE if "stakater" not in each}


def test_a_file_beside_the_test_that_starts_the_program_counts_as_well() -> None:
    started = {"tests/host/machines/booting.py": 'COMMAND = ["-m", "paddock.app"]\n'}
    assert "cli/main.py" in used_of("from tests.host.machines.booting import boot\n", started)


@pytest.mark.parametrize("name", ['"tests.host.machines.killed"', 'f"tests.host.machines.{program}"'])
def test_what_a_program_of_the_suite_imports_counts_as_well(name: str) -> None:
    found = used_of(f"run([sys.executable, '-m', {name}])", {"tests/host/machines/killed.py": "import paddock.base.ticks\n"})
    assert "base/ticks.py" in found and "kubevirt/plan/causes.py" not in found


# --- histories --------------------------------------------------------------------------------------------------------


def git(where: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=where, check=True, capture_output=True)


def commit(where: Path, changes: dict[str, str]) -> None:
    for name, text in changes.items():
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(text)
    git(where, "add", "-A")
    git(where, "commit", "-qm", "x")


def digest(where: Path) -> str:
    return usage.digests([MODULE], repository_files(where), lambda file: (where / file).read_bytes())[MODULE]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    where = tmp_path / "whole"
    where.mkdir()
    git(where, "init", "-q")
    commit(where, {**FILES, ".gitignore": "/.venv/\n"})
    return where


def test_a_clone_without_history_has_the_same_digest(repository: Path, tmp_path: Path) -> None:
    commit(repository, {"src/paddock/base/clock.py": "# second\n"})
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    (tmp_path / "shallow/junk.log").write_text("what a machine leaves in its work directory")
    assert digest(tmp_path / "shallow") == digest(repository)


def test_commits_count_by_what_they_change(repository: Path) -> None:
    first = digest(repository)
    commit(repository, {"README.md": "new", "src/paddock/dialects/stakater/machine.py": "# new", "tests/host/passed.txt": "new"})
    assert digest(repository) == first
    commit(repository, {"src/paddock/base/clock.py": "# new"})
    assert digest(repository) != first
    git(repository, "revert", "--no-edit", "HEAD")
    assert digest(repository) == first


def test_a_merge_is_new_code_only_where_both_sides_count(repository: Path) -> None:
    git(repository, "checkout", "-qb", "side")
    commit(repository, {"docs/manifests/cli.md": "new"})
    git(repository, "checkout", "-q", "-")
    commit(repository, {"src/paddock/base/clock.py": "# new"})
    before = digest(repository)
    git(repository, "merge", "-q", "--no-edit", "side")
    assert digest(repository) == before


def test_a_tree_without_git_has_the_same_digest(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(repository)
    (repository / ".git").rename(repository.parent / "gone")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repository.parent))
    (repository / ".venv").mkdir()
    (repository / ".venv/python.py").write_text("")
    assert digest(repository) == before
    assert commit_of(repository) == "unknown"
