"""`paddock image ...`: the commands for images. Each is a module of its own that is loaded when it is called."""

from importlib import import_module

from paddock.base.errors import Terminal
from paddock.cli.arguments import HelpRequested
from paddock.cli.console import Console

TEXT = "List, pull, push, build and remove disk images."
# command -> its module and what it does
COMMANDS = {
    "ls": ("paddock.app.commands.image_list", "List the images of this host, or the known names"),
    "pull": ("paddock.app.commands.image_pull", "Fetch an image into the library"),
    "push": ("paddock.app.commands.image_push", "Upload an image to a registry, as a container disk"),
    "rm": ("paddock.app.commands.image_remove", "Remove images that nothing uses"),
    "build": ("paddock.app.commands.image_build", "Build a bootable image from Debian packages"),
}


def run(given: list[str], console: Console) -> int:
    """Run one of the commands."""
    if not given or given[0] in ("-h", "--help", "help"):
        raise HelpRequested(_usage())
    given = ["ls", *given[1:]] if given[0] == "list" else given
    if given[0] not in COMMANDS:
        raise Terminal(f'unknown command "image {given[0]}"', fix=f"`paddock image` has {', '.join(COMMANDS)}")
    code: int = import_module(COMMANDS[given[0]][0]).run(given[1:], console)
    return code


def _usage() -> str:
    commands = [f"  {name:<8} {text}" for name, (_, text) in COMMANDS.items()]
    lines = ["usage: paddock image COMMAND [OPTIONS]", "", TEXT, "", "commands:", *commands, "", "See `paddock image COMMAND --help`."]
    return "\n".join(lines) + "\n"
