"""`paddock COMMAND ...`: finds the command, and turns an error into one line and an exit code.

A command is a module that is loaded when it is called, because imports take most of the time of a short command.
"""

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from paddock.base.errors import PaddockError
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE

# command -> summary; the module of the same name in `commands` has `run(arguments, console)`
COMMANDS = {
    "validate": "Check manifests and report every finding with its position",
    "explain": "Describe a kind or a field",
    "examples": "Print example manifests",
    "render": "Print the KubeVirt, CDI and core objects that manifests become",
    "convert": "Translate manifests to another dialect and report what is lost",
    "diff": "Compare manifests by meaning, across dialects",
    "plan": "Predict what each change does to a machine",
    "crds": "Print the CustomResourceDefinitions",
    "why": "Explain why an object is not ready",
}

# command -> its module and its summary
Commands = Mapping[str, tuple[str, str]]
# heading of the help -> the commands below it
Groups = Mapping[str, Sequence[str]]


def main(more: Commands | None = None, groups: Groups | None = None) -> int:
    """Run the program, with the commands that the caller adds. `groups` orders the commands in the help."""
    # What a command builds is freed by counting references; looking for cycles costs a fifth of the time and finds none.
    gc.disable()
    try:
        return run(sys.argv[1:], Console(), more, groups)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("PADDOCK_TRACEBACK"):
            raise
        words = " ".join(str(error).split())
        Console().say(f"paddock: a defect of Paddock: {type(error).__name__}: {words}; report it with what PADDOCK_TRACEBACK=1 adds")
        return UNUSABLE


def run(given: Sequence[str], console: Console, more: Commands | None = None, groups: Groups | None = None) -> int:
    """Run one command; an error becomes one line."""
    known = {name: (f"paddock.cli.commands.{name}", text) for name, text in COMMANDS.items()} | dict(more or {})
    try:
        code = _dispatch(list(given), console, known, groups or {"commands": list(known)})
    except PaddockError as error:
        console.say(f"paddock: {error}")
        code = UNUSABLE
    except (MemoryError, RecursionError):
        console.say("paddock: an input is too large or too deeply nested to be handled; split it")
        code = UNUSABLE
    except BrokenPipeError:
        raise
    except OSError as error:
        console.say(f"paddock: {_of_system(error)}")
        code = UNUSABLE
    console.flush()
    return code


def _of_system(error: OSError) -> str:
    """Describe an error of the operating system in one line that says what to do."""
    import errno  # noqa: PLC0415 - only a failure needs it

    fixes = {
        errno.ENOSPC: "make room on that file system",
        errno.EDQUOT: "make room, or have the quota raised",
        errno.EROFS: "name a place that can be written",
        errno.EACCES: "use another place, or a user who may",
        errno.EPERM: "use another place, or a user who may",
        errno.EMFILE: "raise the limit of open files (ulimit -n)",
    }
    what = f"cannot use {error.filename}" if error.filename else "the system refused something"
    fix = fixes.get(error.errno or 0, "correct that, and try again")
    return f"{what}: {error.strerror or error}; {fix}"


def _dispatch(given: list[str], console: Console, known: Commands, groups: Groups) -> int:
    command, rest = (given[0], given[1:]) if given else ("", [])
    if command in known:
        return _call(known[command][0], rest, console)
    if command in ("-h", "--help", "help", ""):
        if rest[:1] and rest[0] in known:
            return _dispatch([rest[0], "--help"], console, known, groups)
        console.out(_usage(known, groups))
        return GOOD if command else UNUSABLE
    if command in ("-V", "--version", "version"):
        console.out(f"paddock {_version()}\n")
        return GOOD
    return _unknown(command, console, known)


def _call(module: str, given: list[str], console: Console) -> int:
    # The parser is needed as soon as there is a command, and not before.
    from paddock.cli.arguments import HelpRequested  # noqa: PLC0415

    try:
        code: int = import_module(module).run(given, console)
    except HelpRequested as text:
        console.out(str(text))
        code = GOOD
    return code


def _version() -> str:
    # Reading the metadata of the installation costs more than a whole command.
    from importlib.metadata import version  # noqa: PLC0415

    return version("paddock")


def _unknown(command: str, console: Console, known: Commands) -> int:
    # Only a mistyped command needs it.
    from paddock.base.nearest import nearest  # noqa: PLC0415

    meant = nearest(command, known)
    hint = f'did you mean "{meant}"?' if meant else "`paddock help` lists the commands"
    console.say(f'paddock: unknown command "{command}"; {hint}')
    return UNUSABLE


def _usage(known: Commands, groups: Groups) -> str:
    width = max(map(len, known)) + 2
    lines = ["usage: paddock COMMAND [OPTIONS]"]
    for title, names in groups.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}{known[name][1]}" for name in names)]
    lines += ["", "See `paddock COMMAND --help` for the options and exit codes of a command."]
    return "\n".join(lines) + "\n"
