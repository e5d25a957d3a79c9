"""A program of its own: shares one directory of the host with the rights of the directory's owner, then becomes virtiofsd.

Run as `python -I -S share.py path=DIRECTORY socket=NAME guest=NUMBER [readonly=yes] -- VIRTIOFSD ARGUMENTS`. What virtiofsd can do
afterwards:

- It sees the directory at `PLACE` and shares it from there. The path is followed without symbolic links, so that nobody who may write
  above the directory can lead it elsewhere between a check and its use.
- It acts as the owner of the directory, in a user namespace that knows no other user. As another user than root, it acts as that user.
  No file that the owner cannot reach comes to the guest, and no guest makes a file of somebody else.
- In the guest, the owner is the user and group `guest`. Every user of the guest who may make a file makes it as the owner: the calls by
  which virtiofsd would become that user succeed and change nothing.
- The guest makes no set-user-ID or set-group-ID files, and no device that lies there works.

The socket listens before virtiofsd starts; it gets the socket as an open file. It imports nothing of the project, as `confine.py` does.
"""

import ctypes
import os
import platform
import socket
import sys

# Where virtiofsd finds the directory, in a mount namespace of its own.
PLACE = "/mnt"
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _SLAVE = 4096, 16384, 1 << 19
_OPENAT2, _MOUNT_SETATTR = 437, 442
_NO_MAGIC_LINKS, _NO_SYMLINKS = 2, 4
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 1, 2, 4
_EMPTY_PATH, _MOUNT_TREE = 0x1000, 0x8000
_KEEP_CAPABILITIES, _NO_NEW_PRIVS, _SECCOMP, _FILTER, _AMBIENT, _RAISE = 8, 38, 22, 2, 47, 2
_CAPABILITY_VERSION = 0x20080522
_LOAD, _JUMP_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM = 1
_SET_ID_BITS = 0o6000

# Of each architecture: its number for seccomp; the calls that change the user; and those with a mode, by the place of the mode.
_CALLS = {
    "x86_64": (0xC000003E, (116, 117, 119), {85: 1, 90: 1, 83: 1, 91: 1, 133: 1, 2: 2, 258: 2, 259: 2, 268: 2, 452: 2, 257: 3}),
    "aarch64": (0xC00000B7, (159, 147, 149), {52: 1, 33: 2, 34: 2, 53: 2, 452: 2, 56: 3}),
}


class _Resolution(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


class _MountAttributes(ctypes.Structure):
    _fields_ = [("set", ctypes.c_uint64), ("clear", ctypes.c_uint64), ("propagation", ctypes.c_uint64), ("users", ctypes.c_uint64)]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Capabilities(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("true", ctypes.c_uint8), ("false", ctypes.c_uint8), ("value", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction))]


def _failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def open_directory(libc: ctypes.CDLL, path: str) -> int:
    """Return an open directory. Raises `OSError`, also for a path in which any part is a symbolic link."""
    how = _Resolution(os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_MAGIC_LINKS | _NO_SYMLINKS)
    handle = libc.syscall(_OPENAT2, ctypes.c_int(-100), path.encode(), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
    if handle < 0:
        raise _failed(f"cannot open {path} without following links")
    return int(handle)


def check_way(path: str, owner: int) -> None:
    """Check that nobody but root and the owner of a directory has a directory above it, who could put another in its place."""
    parts = path.strip("/").split("/")[:-1]
    for count in range(len(parts) + 1):
        above = "/" + "/".join(parts[:count])
        if (found := os.stat(above, follow_symlinks=False).st_uid) not in (0, owner):
            raise OSError(_EPERM, f"cannot share {path}: {above} belongs to user {found}, who could put another directory in its place")


def _mount_here(libc: ctypes.CDLL, handle: int, *, readonly: bool) -> None:
    """Show the directory, and everything mounted below it, at `PLACE`. No set-user-ID files and devices work there."""
    source = f"/proc/self/fd/{handle}".encode()
    if libc.mount(source, PLACE.encode(), b"", ctypes.c_ulong(_BIND | _RECURSIVE), b""):
        raise _failed(f"cannot mount the directory at {PLACE}")
    flags = _NO_SETUID | _NO_DEVICES | (_READ_ONLY if readonly else 0)
    attributes = _MountAttributes(flags, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    if libc.syscall(_MOUNT_SETATTR, ctypes.c_int(-100), PLACE.encode(), ctypes.c_uint(_MOUNT_TREE), ctypes.byref(attributes), size):
        raise _failed("cannot take rights from the mount (Linux 5.12 or later can)")


def _own_mounts(libc: ctypes.CDLL) -> None:
    if libc.unshare(ctypes.c_int(_NEW_MOUNTS)):
        raise _failed("cannot make a mount namespace")
    if libc.mount(b"none", b"/", b"", ctypes.c_ulong(_RECURSIVE | _SLAVE), b""):
        raise _failed("cannot separate the mounts from the host's")


def _map_users(process: str, guest: int, owner: int, group: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{guest} {owner} 1"), ("gid_map", f"{guest} {group} 1")):
        handle = os.open(f"/proc/{process}/{name}", os.O_WRONLY)
        os.write(handle, text.encode())
        os.close(handle)


def _become_owner(libc: ctypes.CDLL, guest: int, owner: int, group: int) -> None:
    """Enter a user namespace in which `guest` is the owner, and nobody else is known."""
    if os.geteuid() != 0:
        if libc.unshare(ctypes.c_int(_NEW_USER)):
            raise _failed("cannot make a user namespace, which an ordinary user needs to share directories")
        _map_users("self", guest, owner, group)
    else:
        os.setgroups([])
        _enter_mapped(libc, guest, owner, group)
    # Without this, a change of the user would drop what the next programs need.
    libc.prctl(_KEEP_CAPABILITIES, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    os.setresgid(guest, guest, guest)
    os.setresuid(guest, guest, guest)


def _enter_mapped(libc: ctypes.CDLL, guest: int, owner: int, group: int) -> None:
    """Root's way: only a process outside of the namespace may give it users that are not its maker."""
    parent = os.getpid()
    ready, begin = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(begin)
            if os.read(ready, 1):
                _map_users(str(parent), guest, owner, group)
                status = 0
        finally:
            os._exit(status)
    os.close(ready)
    entered = not libc.unshare(ctypes.c_int(_NEW_USER))
    error = None if entered else _failed("cannot make a user namespace")
    if entered:
        os.write(begin, b"x")
    os.close(begin)
    _, status = os.waitpid(child, 0)
    if error is not None:
        raise error
    if status:
        raise OSError(_EPERM, f"cannot map user {owner} into the namespace")


def _keep_rights(libc: ctypes.CDLL) -> None:
    """Have the next program keep the capabilities in its namespace, although it is not root there."""
    header, held = _CapabilityHeader(_CAPABILITY_VERSION, 0), (_Capabilities * 2)()
    if libc.capget(ctypes.byref(header), held):
        raise _failed("cannot read capabilities")
    for each in held:
        each.inheritable = each.effective = each.permitted
    if libc.capset(ctypes.byref(header), held):
        raise _failed("cannot set capabilities")
    for number in range(64):
        if held[number // 32].permitted >> number % 32 & 1:
            libc.prctl(_AMBIENT, ctypes.c_ulong(_RAISE), ctypes.c_ulong(number), ctypes.c_ulong(0), ctypes.c_ulong(0))


def instructions(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the filter of system calls of an architecture: no other user, and no set-ID bits in any mode."""
    architecture, identity, modes = _CALLS[machine]
    found = [(_LOAD, 0, 0, 4), (_JUMP_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    for number in identity:
        found += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO)]
    for number, place in modes.items():
        # The lower half of the argument, which a mode is in; both architectures are little-endian.
        found += [(_JUMP_EQUAL, 0, 4, number), (_LOAD, 0, 0, 16 + 8 * place), (_JUMP_SET, 0, 1, _SET_ID_BITS)]
        found += [(_RETURN, 0, 0, _ERRNO | _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return [*found, (_RETURN, 0, 0, _ALLOW)]


def _filter(libc: ctypes.CDLL) -> None:
    machine = platform.machine()
    if machine not in _CALLS:
        raise OSError(_EPERM, f"cannot share directories on a host of the architecture {machine}")
    found = instructions(machine)
    listed = (_Instruction * len(found))(*(_Instruction(*each) for each in found))
    program = _Program(len(found), listed)
    libc.prctl(_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    if libc.prctl(_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)):
        raise _failed("cannot filter system calls")


def main(words: list[str]) -> None:
    end = words.index("--")
    plan = dict(word.split("=", 1) for word in words[:end])
    path, guest = plan["path"], int(plan["guest"])
    libc = ctypes.CDLL(None, use_errno=True)
    is_root = os.geteuid() == 0
    owner, group = os.geteuid(), os.getegid()
    if not is_root:
        _become_owner(libc, guest, owner, group)
    _own_mounts(libc)
    handle = open_directory(libc, path)
    if is_root:
        status = os.stat(f"/proc/self/fd/{handle}")
        owner, group = status.st_uid, status.st_gid
        check_way(path, owner)
    _mount_here(libc, handle, readonly="readonly" in plan)
    os.close(handle)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(plan["socket"])
    listening.listen(1)
    if is_root:
        _become_owner(libc, guest, owner, group)
    _keep_rights(libc)
    _filter(libc)
    os.set_inheritable(listening.fileno(), True)
    program = words[end + 1 :]
    os.execve(program[0], [*program, f"--fd={listening.fileno()}"], dict(os.environ))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        sys.exit(125)
