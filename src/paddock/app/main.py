"""The program: the offline commands of `cli`, and those that run a server."""

from paddock.cli import main as cli

# command -> module and text; the modules are loaded when they are called
COMMANDS = {
    "up": ("paddock.app.commands.up", "start the control plane on this host"),
    "down": ("paddock.app.commands.down", "stop the control plane"),
    "status": ("paddock.app.commands.status", "tell whether the control plane runs, and where"),
    "console": ("paddock.app.commands.console", "talk to the serial console of a machine"),
    "renew": ("paddock.app.commands.renew", "move machines that run into the QEMU that the host has now"),
    "apiserver": ("paddock.app.commands.apiserver", "run the API server alone, without controllers"),
    "operator": ("paddock.app.commands.operator", "look after front-door objects of any Kubernetes API"),
    "envtest-assets": ("paddock.app.commands.envtest_assets", "write the programs that envtest starts"),
    "backup": ("paddock.app.commands.backup", "copy the store to a file, also while the server runs"),
    "image": ("paddock.app.commands.image", "list, pull, push, build and remove disk images"),
    "restore": ("paddock.app.commands.restore", "make the store of a stopped server from a backup"),
}


def main() -> int:
    """The program."""
    return cli.main(COMMANDS)
