"""Programs that a machine needs beside QEMU, as data."""

import sys

from paddock.engine import share
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.errors import missing, unusable
from paddock.engine.machine.argv.line import HelperProgram
from paddock.engine.machine.argv.options import checked
from paddock.engine.machine.argv.view import HostView, VirtioFs
from paddock.engine.machine.config import SharedDirectory, Tpm

_LONGEST_TAG = 36
# In the guest, the owner of a shared directory of the host: the first ordinary user of the usual images.
_GUEST_USER = 1000


def tpm_helper(tpm: Tpm, host: HostView) -> HelperProgram:
    """The program that is the TPM. It takes paths within comma-separated lists and cannot escape a comma."""
    if host.swtpm is None:
        raise missing("the TPM", "program swtpm", "install the swtpm package")
    state = str(tpm.state or names.TPM_STATE)
    if "," in state:
        raise unusable("the TPM's directory", "swtpm cannot be given a path with a comma")
    argv = (str(host.swtpm), "socket", "--tpm2", "--terminate", "--tpmstate", f"dir={checked('the TPM', state)},mode=0600")
    # A TPM that is not kept starts anew with each start of the machine.
    remove = (names.TPM,) if tpm.state else (names.TPM, names.TPM_STATE)
    return HelperProgram(
        name="tpm", argv=(*argv, "--ctrl", f"type=unixio,path={names.TPM}"), socket=names.TPM, directories=(state,), remove=remove
    )


def share_helper(index: int, directory: SharedDirectory, host: HostView) -> HelperProgram:
    """The program that hands a directory to the guest."""
    of, program = f"shared directory {directory.tag}", host.virtiofs
    if program is None:
        raise missing(of, "program virtiofsd", "install the virtiofsd package")
    if not 0 < len(directory.tag.encode(errors="surrogatepass")) <= _LONGEST_TAG:
        raise unusable(of, f"its tag has to have 1 to {_LONGEST_TAG} bytes")
    path, socket = checked(of, str(directory.path)), names.share_socket(index)
    if directory.as_owner:
        return _owner_helper(index, directory, program)
    if program.classic:
        if "," in path or "\\" in path:
            raise unusable(
                of,
                "this virtiofsd cannot be given a path with a comma or backslash",
            )
        if directory.readonly:
            raise missing(of, "virtiofsd that can share read-only", "install virtiofsd 1.11 or later")
        argv: tuple[str, ...] = (str(program.program), f"--socket-path={socket}", "-o", f"source={path}", "-o", "cache=auto")
    else:
        readonly = ("--readonly",) if directory.readonly else ()
        argv = (str(program.program), f"--socket-path={socket}", f"--shared-dir={path}", "--cache=auto", *readonly)
    return HelperProgram(name=f"share-{index}", argv=argv, socket=socket, remove=(socket,), needs_root=True)


def _owner_helper(index: int, directory: SharedDirectory, program: VirtioFs) -> HelperProgram:
    """The same for a directory of the host, which the program sees at another place and shares with the rights of its owner."""
    socket = names.share_socket(index)
    # The newer program needs a user that is root in its namespace; the files are root's in the guest, too.
    guest = _GUEST_USER if program.classic else 0
    wish = (f"path={directory.path}", f"socket={socket}", f"guest={guest}", *(("readonly=yes",) if directory.readonly else ()))
    options = ("-o", f"source={share.PLACE}", "-o", "cache=auto") if program.classic else (f"--shared-dir={share.PLACE}", "--cache=auto")
    argv = (sys.executable, "-I", "-S", share.__file__, *wish, "--", str(program.program), *options)
    return HelperProgram(name=f"share-{index}", argv=argv, socket=socket, remove=(socket,), needs_root=True)
