"""Words that people have in their fingers from other tools, and the command here that does it, or the line elsewhere."""

from collections.abc import Mapping
from shlex import quote

# word -> the command of paddock that does it
SYNONYMS: Mapping[str, str] = {
    **dict.fromkeys(("list", "ps", "vms", "machines"), "ls"),
    **dict.fromkeys(("launch", "create", "new", "init-vm", "up-vm"), "run"),
    **dict.fromkeys(("shell", "sh", "connect"), "ssh"),
    **dict.fromkeys(("describe", "show", "inspect"), "info"),
    **dict.fromkeys(("remove", "destroy", "terminate", "undefine", "del"), "rm"),
    **dict.fromkeys(("attach", "serial", "tty"), "console"),
    **dict.fromkeys(("shutdown", "poweroff", "halt", "power-off"), "stop"),
    **dict.fromkeys(("poweron", "boot", "power-on"), "start"),
    **dict.fromkeys(("reboot", "soft-reboot", "softreboot"), "restart"),
    **dict.fromkeys(("unfreeze",), "unpause"),
    **dict.fromkeys(("freeze",), "pause"),
    **dict.fromkeys(("pull", "images", "import"), "image"),
    **dict.fromkeys(("log",), "logs"),
    **dict.fromkeys(("scp", "copy", "transfer"), "cp"),
    **dict.fromkeys(("port-forward", "portforward", "proxy"), "forward"),
    **dict.fromkeys(("snapshot", "snapshots", "checkpoint"), "snap"),
    **dict.fromkeys(("monitor", "htop", "stats"), "top"),
    **dict.fromkeys(("serve", "server", "start-server", "daemon"), "up"),
    **dict.fromkeys(("context", "contexts", "config", "use-context"), "ctx"),
    **dict.fromkeys(("lint", "check"), "validate"),
    **dict.fromkeys(("check-host", "verify"), "doctor"),
    **dict.fromkeys(("debug", "troubleshoot", "diagnose"), "why"),
    **dict.fromkeys(("translate",), "convert"),
    **dict.fromkeys(("template",), "render"),
    **dict.fromkeys(("resize", "scale-vm"), "set"),
    **dict.fromkeys(("hibernate", "managedsave"), "suspend"),
    **dict.fromkeys(("revert", "rollback", "snapshot-revert"), "restore"),
    **dict.fromkeys(("disks", "volume"), "disk"),
    **dict.fromkeys(("interface", "nics"), "nic"),
    **dict.fromkeys(("execute", "guest-exec"), "exec"),
    **dict.fromkeys(("screendump",), "screenshot"),
    **dict.fromkeys(("replace",), "apply"),
    **dict.fromkeys(("lock",), "protect"),
    **dict.fromkeys(("unlock",), "unprotect"),
}
# word -> the line of kubectl or virtctl that does it
ELSEWHERE: Mapping[str, str] = {
    "migrate": "virtctl migrate NAME",
    "scale": "kubectl scale vmpool NAME --replicas N",
    "addvolume": "virtctl addvolume NAME --volume-name VOLUME",
    "removevolume": "virtctl removevolume NAME --volume-name VOLUME",
    "memory-dump": "virtctl memory-dump get NAME --claim-name CLAIM",
    "usbredir": "virtctl usbredir VENDOR:PRODUCT NAME",
    "guestosinfo": "virtctl guestosinfo NAME",
    "fslist": "virtctl fslist NAME",
    "userlist": "virtctl userlist NAME",
    "vmexport": "virtctl vmexport download NAME --vm MACHINE --output FILE",
    "export": "virtctl vmexport download NAME --vm MACHINE --output FILE",
    "image-upload": "virtctl image-upload dv NAME --size SIZE --image-path FILE",
    "upload": "virtctl image-upload dv NAME --size SIZE --image-path FILE",
    "expose": "virtctl expose vm NAME --name SERVICE --port PORT",
    "vnc": "virtctl vnc NAME",
    "port-forward": "virtctl port-forward vm/NAME LOCAL:REMOTE",
    "forward": "virtctl port-forward vm/NAME LOCAL:REMOTE",
    "ssh": "virtctl ssh USER@vm/NAME",
    "cp": "virtctl scp FILE USER@vm/NAME:FILE",
    "label": "kubectl label vm NAME KEY=VALUE",
    "annotate": "kubectl annotate vm NAME KEY=VALUE",
    "patch": "kubectl patch vm NAME --type merge -p PATCH",
    "wait": "kubectl wait vm/NAME --for=condition=Ready",
    "rollout": "kubectl get vmpool NAME -w",
    "auth": "kubectl auth can-i VERB RESOURCE",
    "api-resources": "kubectl api-resources",
    "cluster-info": "kubectl cluster-info",
    "credentials": "virtctl credentials set-password NAME --user USER --password-file FILE",
}


def hint(word: str, rest: list[str], known: Mapping[str, object]) -> str:
    """Return what to do in place of an unknown command; empty if nobody knows."""
    command = SYNONYMS.get(word.lower(), "")
    if command in known:
        return f"it is `{' '.join(['paddock', command, *_quoted(rest)])}` here"
    line = ELSEWHERE.get(word.lower()) or ELSEWHERE.get(command)
    return f"use `{line}`" if line else ""


def _quoted(rest: list[str]) -> list[str]:
    # Options of other tools mean other things.
    return [quote(each) for each in rest if not each.startswith("-")]
