"""`python -m tools.recordings [NAME ...]`: plays the scenes on this host and writes docs/recordings/NAME.svg."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from paddock.base.images.build import places
from tools.recordings import svg
from tools.recordings.player import Player
from tools.recordings.scenes import SCENES, Scene

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "recordings"


def main(names: list[str]) -> int:
    """Record the scenes that are named, or all."""
    FOLDER.mkdir(exist_ok=True)
    for scene in SCENES:
        if names and scene.name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="paddock-scene-") as folder:
            text = record(scene, Path(folder))
        (FOLDER / f"{scene.name}.svg").write_text(text, encoding="utf-8")
        print(f"docs/recordings/{scene.name}.svg: {len(text) // 1024} KiB")
    return 0


def record(scene: Scene, folder: Path) -> str:
    """Play a scene in a folder of its own, and return the picture."""
    environment = _environment(folder)
    try:
        _quietly(scene.before, environment, folder)
        return svg.draw(Player(scene.columns, scene.lines, environment, folder).play(scene.commands), scene.title)
    finally:
        _quietly(scene.after, environment, folder)


def _environment(folder: Path) -> Mapping[str, str]:
    """A user's environment, without what this one's may change."""
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    own = {"HOME": str(folder), "PADDOCK_DIR": str(folder / "server"), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    # Images that were built on this host need not be built again.
    return {"PATH": path, "XDG_CACHE_HOME": str(places.cache().parents[1]), **own}


def _quietly(commands: tuple[str, ...], environment: Mapping[str, str], folder: Path) -> None:
    for command in commands:
        subprocess.run(["bash", "-c", command], env=environment, cwd=folder, check=True, capture_output=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
