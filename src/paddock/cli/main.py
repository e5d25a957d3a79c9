"""`paddock COMMAND ...`: finds the command, and turns an error into one line and an exit code.

A command is a module that is loaded when it is called, because imports take most of the time of a short command. It imports what it needs
at its top: the list of all commands, completion and `COMMAND --help` load none.
"""

import errno
import gc
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from paddock.base import variables
from paddock.base.errors import PaddockError
from paddock.base.nearest import nearest
from paddock.cli import synonyms
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE

if TYPE_CHECKING:
    from paddock.cli.completion.candidates import Candidate, NamesQuery

# command -> summary; the module of the same name in `commands` has `parser()` and `run(arguments, console)` (see `commandtree`)
COMMANDS = {
    "ls": "List machines of every dialect",
    "info": "Show a machine at a glance",
    "tree": "Show a machine with its disks, networks and services",
    "start": "Start machines, and wait until they run",
    "stop": "Shut machines down",
    "restart": "Shut machines down and start them again",
    "pause": "Stop the processors of machines",
    "unpause": "Unpause machines",
    "suspend": "Write the memory of machines to disk and free it",
    "resume": "Resume suspended machines",
    "reset": "Reset machines, without a shutdown",
    "rm": "Delete machines; keep their disks",
    "protect": "Protect machines from deletion",
    "unprotect": "Take the protection from deletion off",
    "events": "Show what happened to a machine",
    "top": "Show what running machines use",
    "get": "Show objects of any kind of the server",
    "apply": "Make or change objects by server-side apply",
    "delete": "Delete objects of any kind",
    "edit": "Edit an object, and see first what the change does",
    "validate": "Check manifests and report every finding with its position",
    "explain": "Describe a kind or a field",
    "examples": "Print example manifests",
    "render": "Print manifests as KubeVirt, CDI and core objects",
    "convert": "Translate manifests to another dialect and report losses",
    "diff": "Compare manifests by meaning, across dialects",
    "plan": "Predict what each change does to a machine",
    "crds": "Print the CustomResourceDefinitions",
    "set": "Change processors, memory and other sizes of a machine",
    "disk": "List, add, grow and remove disks of a machine",
    "nic": "List, add and remove network interfaces of a machine",
    "snap": "Take, list and delete snapshots of a machine",
    "restore": "Bring the disks of a machine back to a snapshot",
    "clone": "Make a machine with copies of another machine's disks",
    "fork": "Make machines that continue where a running one is",
    "move": "Move machines with their disks to another server",
    "tenant": "Make, list and delete tenants with a user and a quota",
    "schema": "Print the JSON Schemas of the kinds, for editors",
    "dashboards": "Print dashboards for Grafana, and alert rules",
    "why": "Explain why an object is not ready",
    "exec": "Run a command in a guest by its agent",
    "ssh": "Log in to a guest with ssh, without a route to it",
    "cp": "Copy files to and from a guest by its agent",
    "console": "Connect to the serial console of a machine",
    "logs": "Print what a guest wrote to its console",
    "vnc": "Show the display of a machine in a viewer",
    "screenshot": "Take a picture of the display of a machine",
    "forward": "Forward ports of this host to ports of a guest",
    "expose": "Make a Service that leads to ports of a machine",
    "completion": "Print the completion script of a shell",
    "version": "Print the version and the commit",
}

# command -> its module and its summary; the same as in `commandtree`, which loads the parser of arguments
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
        if os.environ.get(variables.TRACEBACK.name):
            raise
        words = " ".join(str(error).split())
        Console().say(f"paddock: a defect of Paddock: {type(error).__name__}: {words}; report it with what PADDOCK_TRACEBACK=1 adds")
        return UNUSABLE


def run(argv: Sequence[str], console: Console, more: Commands | None = None, groups: Groups | None = None) -> int:
    """Run one command; an error becomes one line."""
    known = every(more)
    try:
        code = _dispatch(list(argv), console, known, groups or {"commands": list(known)})
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


def every(more: Commands | None = None) -> Commands:
    """Return the commands of this package, and the ones that the caller adds."""
    return {name: (f"paddock.cli.commands.{name}", text) for name, text in COMMANDS.items()} | dict(more or {})


def _of_system(error: OSError) -> str:
    """Describe an error of the operating system in one line that says what to do."""
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


def _dispatch(argv: list[str], console: Console, known: Commands, groups: Groups) -> int:
    command, rest = (argv[0], argv[1:]) if argv else ("", [])
    if command in known:
        return _call(known[command][0], argv, console)
    if command in ("-h", "--help", "help", ""):
        if rest[:1] and rest[0] in known:
            return _dispatch([rest[0], "--help"], console, known, groups)
        console.out(_usage(known, groups))
        return GOOD
    if command == "__complete":
        from paddock.cli.completion import candidates  # noqa: PLC0415 - only shells ask

        return candidates.run(rest, console, _names)
    if command in ("-V", "--version"):
        return _dispatch(["version"], console, known, groups)
    return _unknown(command, rest, console, known)


def _names(query: "NamesQuery") -> "Iterable[Candidate]":
    from paddock.cli.completion import names  # noqa: PLC0415 - a client comes with it; commands, options and files complete without

    return names.lookup(query)


def _call(module: str, argv: list[str], console: Console) -> int:
    # Parsers are needed as soon as there is a command, and not before.
    from paddock.cli import arguments, commandhelp  # noqa: PLC0415

    try:
        commandhelp.show(argv)
        code: int = import_module(module).run(argv[1:], console)
    except arguments.HelpRequested as text:
        console.out(str(text))
        code = GOOD
    return code


def _unknown(command: str, rest: list[str], console: Console, known: Commands) -> int:
    meant = nearest(command, known)
    hint = synonyms.hint(command, rest, known) or (f'did you mean "{meant}"?' if meant else "`paddock help` lists the commands")
    console.say(f'paddock: unknown command "{command}"; {hint}')
    return UNUSABLE


def _usage(known: Commands, groups: Groups) -> str:
    width = max(map(len, known)) + 2
    lines = ["usage: paddock COMMAND [OPTIONS]"]
    for title, names in groups.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}{known[name][1]}" for name in names)]
    lines += ["", "See `paddock COMMAND --help` for the options and exit codes of a command."]
    return "\n".join(lines) + "\n"
