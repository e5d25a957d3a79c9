"""`make image`: OCI archives of Paddock's images, in dist/."""

import argparse
import sys
from pathlib import Path

from paddock.base.errors import PaddockError
from tools.container import build, recipes


def main(given: list[str] | None = None) -> int:
    """Build what is named, and print where it is."""
    options = argparse.ArgumentParser(prog="python -m tools.container", description=__doc__)
    options.add_argument("targets", nargs="*", choices=[*recipes.RECIPES, []], help="images to build (default: operator)")
    options.add_argument("--output", type=Path, default=build.ROOT / "dist", help="directory to write to (default: dist)")
    parsed = options.parse_args(given)
    for name in parsed.targets or ["operator"]:
        print(f"building {recipes.RECIPES[name].name} (a minute or two)", flush=True)
        try:
            made = build.build(recipes.RECIPES[name], parsed.output)
        except PaddockError as problem:
            print(f"image: {problem}", file=sys.stderr)
            return 1
        print(
            f"{made.archive}\n{made.bill}\nimage: {made.digest}, {made.packed / 1e6:.1f} MB packed, {made.unpacked / 1e6:.1f} MB unpacked"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
