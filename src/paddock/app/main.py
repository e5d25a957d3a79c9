"""The program: the offline commands of `cli`, and the commands that run or use a server."""

import sys

from paddock.cli import main as cli

# command -> its module and its summary; the modules are loaded when they are called
COMMANDS = {
    "up": ("paddock.app.commands.up", "Start the control plane on this host"),
    "ui": ("paddock.app.commands.ui", "Serve the web console"),
    "run": ("paddock.app.commands.run", "Make a machine from an image, and wait until it is usable"),
    "status": ("paddock.app.commands.status", "Show whether the control plane is ready"),
    "doctor": ("paddock.app.commands.doctor", "Check what this host can do for machines"),
    "ctx": ("paddock.app.commands.ctx", "Add a server to ~/.kube/config, or remove it"),
    "down": ("paddock.app.commands.down", "Stop the control plane; guests keep running"),
    "renew": ("paddock.app.commands.renew", "Move running machines to the installed QEMU"),
    "image": ("paddock.app.commands.image", "List, pull, push, build, remove and prune disk images"),
    "backup": ("paddock.app.commands.backup", "Copy the store of a server to a file, and restore it"),
    "provider": ("paddock.app.commands.provider", "Serve and judge VirtRigaud providers"),
    "operator": ("paddock.app.commands.operator", "Run the controllers of other dialects against a cluster"),
    "apiserver": ("paddock.app.commands.apiserver", "Start the API server alone, for tests"),
    "envtest-assets": ("paddock.app.commands.envtest_assets", "Write the programs that envtest starts"),
}
# The order of the help: what people use every day comes first.
GROUPS = {
    "machines": (
        *("run", "ls", "info", "tree"),
        *("start", "stop", "restart", "pause", "unpause", "suspend", "resume", "reset"),
        *("rm", "protect", "unprotect"),
        *("why", "events", "top"),
    ),
    "into a guest": ("exec", "ssh", "cp", "console", "logs", "vnc", "screenshot", "forward", "expose"),
    "changes of a machine": ("set", "disk", "nic", "snap", "restore", "clone", "fork", "move"),
    "objects of any kind": ("get", "apply", "delete", "edit"),
    "this host": ("up", "ui", "status", "doctor", "ctx", "tenant", "down", "image", "renew"),
    "manifests (no server needed)": ("validate", "explain", "examples", "render", "convert", "diff", "plan", "crds", "schema"),
    "servers and clusters": ("operator", "provider", "apiserver", "envtest-assets", "backup", "dashboards"),
    "this program": ("completion", "version"),
}


def main() -> int:
    return cli.main(COMMANDS, GROUPS)


def complete() -> int:
    """Complete `kubectl paddock ...`: kubectl calls this program, `kubectl_complete-paddock`, with the words after `paddock`."""
    sys.argv[1:1] = ["__complete"]
    return main()
