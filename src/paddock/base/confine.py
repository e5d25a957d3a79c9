"""A program of its own: gives up what it may, then becomes the program in its arguments.

Run as `python -I -S confine.py limit=NAME:NUMBER ... user=NUMBER group=NUMBER ... read=PATH ... write=PATH ... file=DESCRIPTOR ...
written=DESCRIPTOR ... -- PROGRAM ARGUMENTS`. What the started program can do afterwards: read the system's own libraries, the files and
directories it was handed, and nothing else; no network; no more memory, time and file size than the limits; no other user's rights.
Where the kernel lacks a part (Landlock, user namespaces), the others hold. Further words are for programs that live long:

- `network=host` leaves it the host's network, `environment=NAME` leaves it a variable,
- `parent=PID` ends it with that process, its parent,
- `account=PATH` puts a file in the place of /etc/passwd, so that a user of no name has one: libraries ask for it,
- `show=PATH` makes a directory reachable that lies below one which only root may enter; of that one, it sees nothing else.

It imports nothing of the project, and of the library only what is built in or small, so that it starts in a few milliseconds: an import
of an image pays for it twice.
"""

import ctypes
import os
import resource
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVS, _DROP_CAPABILITY, _DEATH_SIGNAL, _SIGKILL = 38, 24, 1, 9
_BIND, _RECURSIVE, _SLAVE = 4096, 16384, 1 << 19
_NEW_MOUNTS = 0x00020000
_NEW_USER, _NEW_NET, _NEW_IPC = 0x10000000, 0x40000000, 0x08000000
# Python ignores them, and what is ignored stays so over exec. (`signal` brings `enum` and takes as long as all of this.)
_SIGPIPE, _SIGXFSZ, _DEFAULT = 13, 25, None
# A heap for each thread would take 128 MB of addresses each, and the limit of memory counts addresses.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
_READ, _READ_DIR, _EXECUTE, _WRITE, _TRUNCATE = 1 << 2, 1 << 3, 1 << 0, 1 << 1, 1 << 14


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def _landlock(libc: ctypes.CDLL, plan: dict[str, list[str]], files: list[tuple[int, bool]]) -> None:
    abi = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        return
    handled = (1 << 13) - 1
    handled |= (1 << 13 if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (1 << 15 if abi >= 5 else 0)
    rules = _Ruleset(handled, 3 if abi >= 4 and "network" not in plan else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    beneath = [(path, False) for path in plan.get("read", ())] + [(path, True) for path in plan.get("write", ())]
    for path, writable in beneath:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        access = _READ | _EXECUTE | (_READ_DIR if os.path.isdir(path) else 0)
        if writable:
            # Everything of a directory but devices; of a device itself, to write it.
            access = handled & ~(1 << 6 | 1 << 11 | 1 << 15) if os.path.isdir(path) else _READ | _WRITE
        _allow(libc, ruleset, handle, access)
        os.close(handle)
    for handle, writable in files:
        _allow(libc, ruleset, handle, _READ | ((_WRITE | (_TRUNCATE if abi >= 3 else 0)) if writable else 0))
    if libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)):
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, handle: int, access: int) -> None:
    rule = _Beneath(access, handle)
    if libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0)):
        raise OSError(ctypes.get_errno(), "landlock_add_rule")


def _hidden_above(path: str) -> str:
    """The uppermost directory above a path that others may not enter; "" if they may enter all."""
    parts = path.strip("/").split("/")
    for count in range(1, len(parts)):
        above = "/" + "/".join(parts[:count])
        if not os.stat(above).st_mode & 1:
            return above
    return ""


def _show(libc: ctypes.CDLL, paths: list[str]) -> None:
    """Cover directories that only root may enter with empty ones, and put into these what is shown of them."""
    covered: dict[str, list[tuple[str, int]]] = {}
    for path in dict.fromkeys(map(os.path.realpath, paths)):
        if above := _hidden_above(path):
            covered.setdefault(above, []).append((path, os.open(path, os.O_PATH | os.O_CLOEXEC)))
    if not covered:
        return
    before = os.umask(0o022)
    for above, shown in covered.items():
        _mount(libc, "tmpfs", above, "tmpfs", 0, "mode=755,size=1m")
        for path, handle in shown:
            os.makedirs(path, mode=0o755, exist_ok=True)
            _mount(libc, f"/proc/self/fd/{handle}", path, "", _BIND | _RECURSIVE, "")
            os.close(handle)
    os.umask(before)


def _mount(libc: ctypes.CDLL, source: str, place: str, kind: str, flags: int, options: str) -> None:
    if libc.mount(source.encode(), place.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {place}")


def _prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), "prctl")


def _unshare(libc: ctypes.CDLL, plan: dict[str, list[str]]) -> None:
    # Namespaces are a second wall; where they are forbidden, Landlock and the user hold.
    network = 0 if "network" in plan else _NEW_NET
    if os.geteuid() == 0:
        libc.unshare(ctypes.c_int(network | _NEW_IPC))
        if ("show" in plan or "account" in plan) and not libc.unshare(ctypes.c_int(_NEW_MOUNTS)):
            _mount(libc, "none", "/", "", _RECURSIVE | _SLAVE, "")
            for path in plan.get("account", ()):
                _mount(libc, path, "/etc/passwd", "", _BIND, "")
            _show(libc, plan.get("show", []))
    elif network:
        libc.unshare(ctypes.c_int(_NEW_USER | network | _NEW_IPC))


def main(words: list[str]) -> None:
    """Confine this process and become the program."""
    end = words.index("--")
    plan: dict[str, list[str]] = {}
    for word in words[:end]:
        name, _, value = word.partition("=")
        plan.setdefault(name, []).append(value)
    libc = ctypes.CDLL(None, use_errno=True)
    os.setsid()
    _unshare(libc, plan)
    for limit in plan.get("limit", ()):
        name, _, value = limit.partition(":")
        resource.setrlimit(getattr(resource, name), (int(value), int(value)))
    for capability in range(64 if "user" in plan else 0):
        libc.prctl(_DROP_CAPABILITY, ctypes.c_ulong(capability), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    for user in map(int, plan.get("user", ())):
        os.setgroups(list(map(int, plan.get("group", ()))))
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    for parent in map(int, plan.get("parent", ())):
        # After the change of the user, which would take it back.
        _prctl(libc, _DEATH_SIGNAL, _SIGKILL)
        if os.getppid() != parent:
            sys.exit(125)
    _prctl(libc, _NO_NEW_PRIVS, 1)
    files = [(int(handle), writable) for name, writable in (("file", False), ("written", True)) for handle in plan.get(name, ())]
    _landlock(libc, plan, files)
    for number in (_SIGPIPE, _SIGXFSZ):
        libc.signal(ctypes.c_int(number), ctypes.c_void_p(_DEFAULT))
    program = words[end + 1]
    given = {name: os.environ[name] for name in plan.get("environment", ())}
    os.execve(program, words[end + 1 :], {**_ENVIRONMENT, **given})


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        # A status that the program itself does not use: nothing is the fault of what it was to look at.
        sys.stderr.write(str(error))
        sys.exit(125)
