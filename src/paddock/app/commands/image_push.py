"""`paddock image push`: an image of this host becomes a container disk in a registry."""

from paddock.app.directory import imagelibrary
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.engine.images.sources import RegistryImage

TEXT = "upload an image into a registry, as a container disk"


def run(given: list[str], console: Console) -> int:
    """Upload."""
    options = arguments.parser("image push", TEXT)
    imagelibrary.add_directory(options)
    imagelibrary.add_servers(options)
    options.add_argument("image", help="an image of `paddock image ls`: its digest, or what it was pulled from")
    options.add_argument("reference", help="docker://registry/name:tag")
    options.add_argument("--arch", default="", help="what the image says of itself (default: this host's architecture)")
    parsed = options.parse_args(given)
    images = imagelibrary.library(parsed, imagelibrary.settings(parsed))
    image = imagelibrary.find(images, parsed.image).image
    target = RegistryImage(
        parsed.reference,
        architecture=parsed.arch,
        docker_configs=imagelibrary.docker_configs(parsed),
        trust=imagelibrary.trust(parsed),
    )
    digest = imagelibrary.work(images, lambda: images.push(image, target))
    console.out(f"{parsed.reference}@{digest}\n")
    return 0
