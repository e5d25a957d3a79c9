"""The program: the offline commands of `cli`, and the commands that run or use a server."""

from paddock.cli import main as cli

# command -> its module and its summary; the modules are loaded when they are called
COMMANDS = {
    "up": ("paddock.app.commands.up", "Start the control plane on this host"),
    "status": ("paddock.app.commands.status", "Show whether the control plane is ready"),
    "down": ("paddock.app.commands.down", "Stop the control plane; guests keep running"),
    "console": ("paddock.app.commands.console", "Connect to the serial console of a machine"),
    "renew": ("paddock.app.commands.renew", "Move running machines to the installed QEMU"),
    "image": ("paddock.app.commands.image", "List, pull, push, build and remove disk images"),
    "backup": ("paddock.app.commands.backup", "Copy the store of a server to a file"),
    "restore": ("paddock.app.commands.restore", "Replace the store of a stopped server with a backup"),
    "provider": ("paddock.app.commands.provider", "Serve, judge and load VirtRigaud providers"),
    "operator": ("paddock.app.commands.operator", "Run the controllers of other dialects against a cluster"),
    "apiserver": ("paddock.app.commands.apiserver", "Start the API server alone, for tests"),
    "envtest-assets": ("paddock.app.commands.envtest_assets", "Write the programs that envtest starts"),
}
# The order of the help: what people use every day comes first.
GROUPS = {
    "machines on this host": ("up", "status", "down", "console", "why", "image", "renew"),
    "manifests (no server needed)": ("validate", "explain", "examples", "render", "convert", "diff", "plan", "crds"),
    "servers and clusters": ("operator", "provider", "apiserver", "envtest-assets", "backup", "restore"),
}


def main() -> int:
    """Run the program."""
    return cli.main(COMMANDS, GROUPS)
