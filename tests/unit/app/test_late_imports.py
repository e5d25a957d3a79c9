"""Libraries that a server loads with the first import of an image, and with the first token, are loaded in a thread: see the watchdog."""

import subprocess
import sys
from pathlib import Path

_BEGINNING = """
import asyncio, importlib.abc, sys, threading
from pathlib import Path

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            print("loaded in", threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Finder())
place = Path(sys.argv[2])
"""
_IMPORT = """
from paddock.base.images.library import ImageLibrary
from paddock.base.images.sources import File

async def main():
    library = ImageLibrary(place)
    try:
        await library.fetch(File(place / "missing.img"))
    except Exception as error:
        print(type(error).__name__)
    await library.close()
"""
_TOKEN = """
from paddock.server.security.identity import PendingIdentity
from paddock.server.security.tokens import AccountTokens, Keyring

async def main():
    tokens = AccountTokens(Keyring(place / "key"), None, None)
    try:
        tokens.user("not.a.token")
    except PendingIdentity as pending:
        await pending.settle()
    print(tokens.user("not.a.token"))
"""


def play(script: str, module: str, place: Path) -> str:
    command = [sys.executable, "-c", f"{_BEGINNING}{script}\nasyncio.run(main())", module, str(place)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_first_token_waits_for_its_library_in_a_thread(tmp_path: Path) -> None:
    key = "from paddock.server.security import signing; import sys; sys.stdout.buffer.write(signing.new_key())"
    (tmp_path / "key").write_bytes(subprocess.run([sys.executable, "-c", key], capture_output=True, check=True).stdout)
    assert play(_TOKEN, "paddock.server.security.jose", tmp_path).splitlines() == ["loaded in False", "None"]


def test_the_first_import_waits_for_its_libraries_in_a_thread(tmp_path: Path) -> None:
    assert play(_IMPORT, "paddock.base.images.importer", tmp_path).splitlines() == ["loaded in False", "ImageRefused"]
