"""Run as a program of its own: says on one line of JSON whether KVM carries out instructions, and how fast.

A module can answer every request of KVM's and still interpret the guest's code, thousands of times slower than a processor
and with gaps. So a loop of a million rounds is run, which takes a processor a millisecond. Only the standard library's
modules are imported, and nothing of Paddock: whoever runs it may end it at any time.
"""

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import platform
import signal
import struct
import time

GET_API, CREATE_VM, GET_MMAP_SIZE = 0xAE00, 0xAE01, 0xAE04
CREATE_VCPU, RUN = 0xAE41, 0xAE80
SET_MEMORY = 1 << 30 | 32 << 16 | 0xAE46
GET_SREGS, SET_SREGS = 2 << 30 | 312 << 16 | 0xAE83, 1 << 30 | 312 << 16 | 0xAE84
GET_REGS = 2 << 30 | 144 << 16 | 0xAE81
SET_REGS = 1 << 30 | 144 << 16 | 0xAE82
EXIT_IO, EXIT_INTERRUPTED = 2, 10
ROUNDS = 1_000_000
LIMIT_SECONDS = 0.05
# mov ecx, ROUNDS; loop: dec ecx; jnz loop; out 0x80, al; hlt
CODE = b"\xb9" + struct.pack("<I", ROUNDS) + b"\xff\xc9\x75\xfc\xe6\x80\xf4"
MEMORY = 0x10000


def answer(state: str, detail: str = "", rate: float = 0.0) -> None:
    """The one line of output."""
    print(json.dumps({"state": state, "detail": detail, "mips": round(rate, 1)}))


def sregs(cpu: int) -> bytes:
    """64-bit mode at once, without descriptor tables, over one identical page of two megabytes."""
    found = bytearray(fcntl.ioctl(cpu, GET_SREGS, bytes(312)))

    def segment(offset: int, selector: int, kind: int, big: int, long: int) -> None:
        struct.pack_into("<QIH8B2x", found, offset, 0, 0xFFFFFFFF, selector, kind, 1, 0, big, 1, long, 1, 0)

    segment(0, 8, 11, 0, 1)
    for index in range(1, 6):
        segment(24 * index, 16, 3, 1, 0)
    struct.pack_into("<6Q", found, 24 * 8 + 32, 0x80050033, 0, 0x2000, 0x220, 0, 0x500)
    return bytes(found)


def run_loop(kvm: int) -> tuple[int, float, int]:
    """Return the processor's exit reason, the seconds until then, and the rounds that it had done."""
    vm = fcntl.ioctl(kvm, CREATE_VM, 0)
    memory = mmap.mmap(-1, MEMORY)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(vm, SET_MEMORY, struct.pack("=IIQQQ", 0, 0, 0, MEMORY, address))
    memory[0x1000 : 0x1000 + len(CODE)] = CODE
    for place, entry in ((0x2000, 0x3003), (0x3000, 0x4003), (0x4000, 0x83)):
        memory[place : place + 8] = struct.pack("<Q", entry)
    cpu = fcntl.ioctl(vm, CREATE_VCPU, 0)
    state = mmap.mmap(cpu, fcntl.ioctl(kvm, GET_MMAP_SIZE, 0))
    fcntl.ioctl(cpu, SET_SREGS, sregs(cpu))
    fcntl.ioctl(cpu, SET_REGS, struct.pack("<18Q", *[0] * 6, 0x8000, *[0] * 9, 0x1000, 2))
    signal.signal(signal.SIGALRM, lambda *_: None)
    # Repeated: the first signal may come before the loop has begun.
    signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS, LIMIT_SECONDS)
    started, took, reason = time.monotonic(), 0.0, EXIT_INTERRUPTED
    while reason == EXIT_INTERRUPTED and took < LIMIT_SECONDS:
        with contextlib.suppress(InterruptedError):
            fcntl.ioctl(cpu, RUN, 0)
        took = time.monotonic() - started
        reason = struct.unpack_from("<I", state, 8)[0]
    signal.setitimer(signal.ITIMER_REAL, 0)
    left = struct.unpack_from("<I", fcntl.ioctl(cpu, GET_REGS, bytes(144)), 16)[0]
    return reason, took, ROUNDS - min(left, ROUNDS)


def main() -> None:
    try:
        kvm = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return answer("absent", "there is no /dev/kvm")
    except PermissionError:
        return answer("forbidden", "/dev/kvm may not be opened by this user; membership in the group kvm usually allows it")
    except OSError as error:
        return answer("broken", f"/dev/kvm cannot be opened: {error.strerror}")
    try:
        version = fcntl.ioctl(kvm, GET_API, 0)
        if version != 12:
            return answer("broken", f"KVM's interface has version {version} instead of 12")
        if platform.machine() != "x86_64":
            os.close(fcntl.ioctl(kvm, CREATE_VM, 0))
            return answer("real", "its speed was not measured on this architecture")
        reason, took, rounds = run_loop(kvm)
    except OSError as error:
        return answer("broken", f"a machine cannot be made: {error.strerror}")
    # two instructions for each round
    rate = 2 * rounds / took / 1e6
    if reason == EXIT_IO and took < LIMIT_SECONDS:
        return answer("real", rate=rate)
    if took >= LIMIT_SECONDS:
        return answer("emulated", f"it carries out {rate:.1f} million instructions per second", rate)
    return answer("broken", f"a loop ended with exit reason {reason}")


if __name__ == "__main__":
    main()
