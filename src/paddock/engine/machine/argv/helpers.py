"""Programs that a machine needs beside QEMU, as data."""

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.errors import missing, unusable
from paddock.engine.machine.argv.line import HelperProgram
from paddock.engine.machine.argv.options import checked
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import SharedDirectory, Tpm

_LONGEST_TAG = 36


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
