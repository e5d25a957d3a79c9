"""`paddock image ...`: the commands for images, each in a module of its own, loaded when it is called."""

from importlib import import_module

from paddock.base.errors import Terminal
from paddock.cli.arguments import HelpRequested
from paddock.cli.console import Console

TEXT = "list, pull, push, build and remove disk images"
# command -> its module and what it does
COMMANDS = {
    "ls": ("paddock.app.commands.image_list", "list the images of this host, or the names that are known"),
    "pull": ("paddock.app.commands.image_pull", "fetch an image into the library"),
    "push": ("paddock.app.commands.image_push", "upload an image into a registry, as a container disk"),
    "rm": ("paddock.app.commands.image_remove", "remove images that nothing uses"),
    "build": ("paddock.app.commands.image_build", "make a bootable image from Debian packages"),
}


def run(given: list[str], console: Console) -> int:
    """One of the commands."""
    if not given or given[0] in ("-h", "--help", "help"):
        raise HelpRequested(_usage())
    given = ["ls", *given[1:]] if given[0] == "list" else given
    if given[0] not in COMMANDS:
        raise Terminal(f'unknown command "image {given[0]}"', fix=f"`paddock image` has {', '.join(COMMANDS)}")
    code: int = import_module(COMMANDS[given[0]][0]).run(given[1:], console)
    return code


def _usage() -> str:
    lines = ["usage: paddock image COMMAND [OPTIONS]", "", "commands:", *(f"  {name:<8} {text}" for name, (_, text) in COMMANDS.items())]
    return "\n".join([*lines, "", "`paddock image COMMAND --help` tells more."]) + "\n"
