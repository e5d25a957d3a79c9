"""`paddock image build`: makes bootable images from Debian packages, for hosts that cannot download one."""

import json
import os
import shutil
from pathlib import Path

from paddock.base.images.build import debian, places, tiny
from paddock.cli import arguments, progress
from paddock.cli.console import Console

TEXT = "Build a bootable image from Debian packages, for hosts that cannot download one. Results are cached."
_KERNELS = ("fastest", "debian", "own")
_MIB = 1 << 20


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("image build", TEXT, "[OPTIONS] IMAGE")
    known = ("tiny", *debian.RELEASES)
    image = options.add_argument("image", metavar="IMAGE", type=arguments.one_of(known), help=f"tiny or {', '.join(debian.RELEASES)}")
    arguments.complete_with(image, known)
    options.add_argument("-o", "--output", dest="output", type=Path, metavar="DIR", help="Copy the files to this directory, too")
    options.add_argument("--cache", type=Path, metavar="DIR", help="Directory of downloads and results (default: ~/.cache/paddock/guests)")
    arguments.add_choice(
        options,
        ("--kernel",),
        _KERNELS,
        "Kernel of tiny: Debian's, or one built from source (ten minutes, once); fastest is the built one if it exists (default: fastest)",
        "fastest",
    )
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="Parallel compiler jobs (default: one per CPU)")
    arguments.add_quiet(options)
    arguments.add_choice(options, ("--format",), ("text", "json"), "Output format (default: text)", "text")
    return options


def run(argv: list[str], console: Console) -> int:
    """Build the image, or find it in the cache, and print its path."""
    parsed = parser().parse_args(argv)
    cache = parsed.cache or places.cache()
    with progress.ProgressBar(console, quiet=parsed.quiet) as bar:
        # A build that is in the cache already is over before the bar appears.
        if parsed.image == "tiny":
            bar.show("building tiny" + _warning(parsed.kernel))
            files = _tiny_files(tiny.build(cache, parsed.kernel, parsed.jobs), parsed.output)
        else:
            bar.show(f"building {parsed.image}, which takes two minutes")
            files = {"disk": _copied(debian.build(cache, parsed.image), parsed.output)}
    if parsed.format == "json":
        console.out(json.dumps({part: str(path) for part, path in files.items()}, indent=2) + "\n")
    else:
        console.out("".join(f"{part:<7} {path} ({path.stat().st_size / _MIB:.0f} MiB)\n" for part, path in files.items()))
    return 0


def _warning(kernel: str) -> str:
    return " with a kernel of its own, which takes ten minutes, once" if kernel == "own" else ""


def _tiny_files(image: tiny.TinyImage, output: Path | None) -> dict[str, Path]:
    image = tiny.export(image, output) if output else image
    return {"disk": image.disk, "kernel": image.kernel, "bare": image.bare, "initrd": image.initrd}


def _copied(path: Path, output: Path | None) -> Path:
    if output is None:
        return path
    output.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(path, output / path.name))
