"""Pages are read and followed as a reader would."""

from pathlib import Path

import pytest

from tests.kit.pages import Block, BlockFailed, Reader, blocks, runners, unseen

PAGE = """# A page
<!-- run by: tests/unit/test_pages.py -->

```yaml title="folder/one.yaml"
a: 1
```

```console
$ export PLACE=folder
$ cat $PLACE/one.yaml \\
>   | head -1
a: ...
```

<!-- not run: it needs a cluster -->
```sh
exit 1
```

Text.

- A list:

  ```console
  $ cat $PLACE/one.yaml
  a: 1
  ```

<!-- not run below: nobody has this -->
```sh
exit 2
```
```sh
exit 3
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "page.md"
    file.write_text(PAGE)
    return file


def test_blocks_know_what_they_are(page: Path) -> None:
    found = blocks(page)
    assert [(each.line, each.language, each.title, each.reason) for each in found] == [
        (4, "yaml", "folder/one.yaml", ""),
        (8, "console", "", ""),
        (16, "sh", "", "it needs a cluster"),
        (24, "console", "", ""),
        (30, "sh", "", "nobody has this"),
        (33, "sh", "", "nobody has this"),
    ]
    assert found[1].commands == ["export PLACE=folder", "cat $PLACE/one.yaml \\\n  | head -1"]
    assert found[1].output == ["a: ..."]
    assert [each.is_shell for each in found] == [False, True, True, True, True, True]
    assert runners(page) == ["tests/unit/test_pages.py"]


def follow(page: Path, tmp_path: Path, **more: object) -> Reader:
    folder = tmp_path / "reader"
    folder.mkdir()
    reader = Reader(folder, {}, **more)  # type: ignore[arg-type]
    reader.follow(page)
    return reader


def test_a_reader_follows_a_page(page: Path, tmp_path: Path) -> None:
    # The variable of one block holds in the next.
    assert follow(page, tmp_path).printed == ["a: 1\n", "a: 1\n"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$ echo one\ntwo\n", "it did not print 'two'"),
        ("$ exit 3\n", "it ended with 3"),
        ("$ false\n$ true\n", "it ended with 1"),
    ],
)
def test_a_page_that_is_wrong_is_seen(page: Path, tmp_path: Path, text: str, why: str) -> None:
    page.write_text(f"```console\n{text}```\n")
    with pytest.raises(BlockFailed, match=why):
        follow(page, tmp_path)


def test_codes_that_a_page_expects(page: Path, tmp_path: Path) -> None:
    page.write_text("```console\n$ (exit 4)\n$ echo after\nafter\n```\n")
    assert follow(page, tmp_path, codes=(4,)).printed == ["after\n"]


@pytest.mark.parametrize(
    ("expected", "printed", "missing"),
    [
        (["a  b"], "a b\n", ""),
        (["b", "a"], "a\nb\n", "a"),
        (["a ... c"], "a b c\n", ""),
        (["one", "two"], "one two\n", ""),
        (["one two"], "one\ntwo\n", "one two"),
    ],
)
def test_expected_lines(expected: list[str], printed: str, missing: str) -> None:
    assert unseen(expected, printed) == missing


def test_a_script_is_one_command() -> None:
    assert Block(Path("page.md"), 1, "sh", "", "cd x\nls\n").commands == ["cd x\nls\n"]
