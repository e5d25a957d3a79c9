"""A program of its own: becomes a VMM that outlives the driver.

Run as `python -I -S launcher.py FOLDER ROOT LIMITS USER GROUPS -- PROGRAM ARGUMENTS`. It leaves the driver's session, takes the lock that a
machine has while it runs, writes down which process it is, and becomes the program. Who finds the lock taken has started the machine twice
and ends with status 75. The lock is standard error's open file, so it lasts as long as the process that has it, whoever closes other files.

It imports nothing of the project, so that it starts in a few milliseconds.
"""

import ctypes
import fcntl
import json
import os
import resource
import sys

TAKEN = 75
_NO_NEW_PRIVS = 38


def start_time(pid: int) -> int:
    """Return the start of a process in clock ticks after the host's."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def boot() -> str:
    """Return the identity of this run of the host."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def main(words: list[str]) -> int:
    end = words.index("--")
    folder, root, limits, user, groups = words[:end]
    if os.fork():
        # The VMM belongs to nobody but init: its end is not the driver's to collect.
        return 0
    run(folder, root, limits, (user, groups), words[end + 1 :])
    return 0


def run(folder: str, root: str, limits: str, who: tuple[str, str], argv: list[str]) -> None:
    """Take the lock, write down the process, and become the program."""
    os.setsid()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    log = os.open(os.path.join(folder, "vmm.log"), flags, 0o600)
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(TAKEN)
    console = os.open(os.path.join(folder, "console.log"), flags, 0o600)
    nothing = os.open("/dev/null", os.O_RDONLY)
    for handle, at in ((nothing, 0), (console, 1), (log, 2)):
        os.dup2(handle, at)
    os.closerange(3, 4096)
    _note(folder)
    for each in filter(None, limits.split(",")):
        name, _, number = each.partition(":")
        resource.setrlimit(getattr(resource, name), (int(number), int(number)))
    os.chdir(root)
    os.umask(0o077)
    user, groups = who
    if user:
        os.setgroups([int(each) for each in groups.split(",") if each])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    os.execve(argv[0], argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"})


def _note(folder: str) -> None:
    """Write down the process. It is in place before the program runs, so no VMM is ever unknown."""
    pid = os.getpid()
    new = os.path.join(folder, ".process.new")
    with open(new, "w", encoding="ascii") as file:
        json.dump({"pid": pid, "start": start_time(pid), "boot": boot()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, os.path.join(folder, "process.json"))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        sys.stderr.write(f"cannot start the VMM: {error.strerror}\n")
        sys.exit(1)
