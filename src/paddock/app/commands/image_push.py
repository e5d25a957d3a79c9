"""`paddock image push`: uploads an image to a registry as a container disk."""

from paddock.app.directory import imagelibrary
from paddock.base.images.sources import RegistryImage
from paddock.cli import arguments, progress
from paddock.cli.console import Console

TEXT = "Upload an image to a registry, as a container disk."


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("image push", TEXT, "[OPTIONS] IMAGE REFERENCE")
    imagelibrary.add_directory(options)
    imagelibrary.add_servers(options)
    image = options.add_argument("image", metavar="IMAGE", help="Image from `paddock image ls`: its digest or its source")
    arguments.complete_with(image, arguments.KnownNames.IMAGES)
    options.add_argument("reference", metavar="REFERENCE", help="Target: docker://registry/name:tag")
    options.add_argument("--arch", default="", metavar="ARCH", help="Architecture to record (default: this host's)")
    arguments.add_quiet(options)
    return options


def run(argv: list[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    images = imagelibrary.existing(parsed, imagelibrary.settings(parsed))
    image = imagelibrary.find(images, parsed.image).image
    target = RegistryImage(
        parsed.reference,
        architecture=parsed.arch,
        docker_configs=imagelibrary.docker_configs(parsed),
        trust=imagelibrary.trust(parsed),
    )
    with progress.ProgressBar(console, quiet=parsed.quiet) as bar:
        digest = imagelibrary.work(images, lambda: images.push(image, target, imagelibrary.shown(bar)))
    console.out(f"{parsed.reference}@{digest}\n")
    return 0
