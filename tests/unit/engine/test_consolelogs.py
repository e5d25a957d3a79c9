"""The console logs of runs that are over."""

from pathlib import Path

from paddock.engine.consolelogs import LIMIT, ConsoleLogs
from paddock.engine.machine.directory import Directory


def ended(root: Path, output: bytes) -> Directory:
    """A machine's directory at the end of a run."""
    directory = Directory(root / "machine")
    directory.make()
    (directory.run / "serial.log").write_bytes(output)
    return directory


def test_the_last_run_is_kept(tmp_path: Path) -> None:
    logs = ConsoleLogs(tmp_path / "consoles")
    assert logs.kept("owner") is None
    logs.keep("owner", ended(tmp_path, b"one"))
    logs.keep("owner", ended(tmp_path, b"two"))
    assert logs.kept("owner") == b"two"
    # A run that said nothing, and a machine without a log.
    logs.keep("owner", ended(tmp_path, b""))
    assert logs.kept("owner") == b"two"
    assert (tmp_path / "consoles" / "owner").stat().st_mode & 0o077 == 0


def test_no_log_grows_without_end(tmp_path: Path) -> None:
    logs = ConsoleLogs(tmp_path / "consoles")
    logs.keep("owner", ended(tmp_path, b"x" * (LIMIT + 5) + b"end"))
    kept = logs.kept("owner")
    assert kept is not None and len(kept) == LIMIT and kept.endswith(b"end")


def test_logs_go_with_their_owners(tmp_path: Path) -> None:
    logs = ConsoleLogs(tmp_path / "consoles")
    logs.keep_only(())
    for owner in ("stays", "goes"):
        logs.keep(owner, ended(tmp_path, b"said"))
    (tmp_path / "consoles" / "stays.new").write_bytes(b"cut short")
    logs.keep_only({"stays"})
    assert [path.name for path in (tmp_path / "consoles").iterdir()] == ["stays"]


def test_no_log_is_read_through_a_link(tmp_path: Path) -> None:
    logs, directory = ConsoleLogs(tmp_path / "consoles"), ended(tmp_path, b"")
    (directory.run / "serial.log").unlink()
    (tmp_path / "secret").write_bytes(b"secret")
    (directory.run / "serial.log").symlink_to(tmp_path / "secret")
    logs.keep("owner", directory)
    assert logs.kept("owner") is None
