"""A program of its own: gives up what it may, then becomes the program in its arguments.

Run as `python -I -S confine.py limit=NAME:NUMBER ... user=NUMBER read=PATH ... file=DESCRIPTOR ... written=DESCRIPTOR ... -- PROGRAM
ARGUMENTS`. What the started program can do afterwards: read the system's own libraries, the files it was handed, and nothing else; no
network; no more memory, time and file size than the limits; no other user's rights. Where the kernel lacks a part (Landlock, user
namespaces), the others hold. It imports nothing of the project, and of the library only what is built in or small, so that it starts
in a few milliseconds: an import of an image pays for it twice.
"""

import ctypes
import os
import resource
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVS = 38
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


def _landlock(libc: ctypes.CDLL, read: list[str], files: list[tuple[int, bool]]) -> None:
    abi = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 1:
        return
    handled = (1 << 13) - 1
    handled |= (1 << 13 if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (1 << 15 if abi >= 5 else 0)
    rules = _Ruleset(handled, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for path in read:
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        access = _READ | _EXECUTE | (_READ_DIR if os.path.isdir(path) else 0)
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


def main(words: list[str]) -> None:
    """Confine this process and become the program."""
    end = words.index("--")
    plan: dict[str, list[str]] = {}
    for word in words[:end]:
        name, _, value = word.partition("=")
        plan.setdefault(name, []).append(value)
    libc = ctypes.CDLL(None, use_errno=True)
    os.setsid()
    # Namespaces are a second wall; where they are forbidden, Landlock and the user hold.
    libc.unshare(ctypes.c_int((_NEW_NET | _NEW_IPC) if os.geteuid() == 0 else (_NEW_USER | _NEW_NET | _NEW_IPC)))
    for limit in plan.get("limit", ()):
        name, _, value = limit.partition(":")
        resource.setrlimit(getattr(resource, name), (int(value), int(value)))
    for user in map(int, plan.get("user", ())):
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    if libc.prctl(_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise OSError(ctypes.get_errno(), "prctl")
    files = [(int(handle), writable) for name, writable in (("file", False), ("written", True)) for handle in plan.get(name, ())]
    _landlock(libc, plan.get("read", []), files)
    for number in (_SIGPIPE, _SIGXFSZ):
        libc.signal(ctypes.c_int(number), ctypes.c_void_p(_DEFAULT))
    program = words[end + 1]
    os.execve(program, words[end + 1 :], _ENVIRONMENT)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        # A status that the program itself does not use: nothing is the fault of what it was to look at.
        sys.stderr.write(str(error))
        sys.exit(125)
