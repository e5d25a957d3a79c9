"""`paddock COMMAND ...`: finds the command and turns what goes wrong into one line and an exit code.

Commands are modules that are loaded when they are called, because most of the time of a short command is importing.
"""

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from paddock.base.errors import PaddockError
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE

# command -> what it does; the module of the same name in `commands` has `run(arguments, console)`
COMMANDS = {
    "validate": "check manifests: every finding with its place",
    "render": "print the KubeVirt, CDI and core objects that manifests become",
    "convert": "print manifests in another dialect, and what is lost",
    "diff": "compare manifests by meaning, across dialects",
    "plan": "tell what each change of a manifest does to the machine",
    "explain": "describe a kind or a field",
    "crds": "print the CustomResourceDefinitions",
    "examples": "print example manifests",
    "why": "tell why an object of a server is not what it should be",
}


# command -> its module and what it does
Commands = Mapping[str, tuple[str, str]]


def main(more: Commands | None = None) -> int:
    """The program, with the commands that its caller adds."""
    # What a command builds is freed by counting references; looking for cycles costs a fifth of the time and finds none.
    gc.disable()
    try:
        return run(sys.argv[1:], Console(), more)
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


def run(given: Sequence[str], console: Console, more: Commands | None = None) -> int:
    """One command; what goes wrong is one line."""
    known = {name: (f"paddock.cli.commands.{name}", text) for name, text in COMMANDS.items()} | dict(more or {})
    try:
        code = _dispatch(list(given), console, known)
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


def _dispatch(given: list[str], console: Console, known: Commands) -> int:
    command, rest = (given[0], given[1:]) if given else ("", [])
    if command in known:
        return _call(known[command][0], rest, console)
    if command in ("-h", "--help", "help", ""):
        if rest[:1] and rest[0] in known:
            return _dispatch([rest[0], "--help"], console, known)
        console.out(_usage(known))
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


def _usage(known: Commands) -> str:
    lines = ["usage: paddock COMMAND [OPTIONS]", "", "commands:"]
    lines += [f"  {name:<10} {text}" for name, (_, text) in known.items()]
    lines += [
        "",
        "`paddock COMMAND --help` tells more. Exit codes: 0 good, 1 findings, 2 usage or unreadable input, 3 losses with --strict.",
    ]
    return "\n".join(lines) + "\n"
