"""`paddock image push`: uploads an image to a registry as a container disk."""

from paddock.app.directory import imagelibrary
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.engine.images.sources import RegistryImage

TEXT = "Upload an image to a registry, as a container disk."


def run(given: list[str], console: Console) -> int:
    """Upload the image."""
    options = arguments.parser("image push", TEXT, "[OPTIONS] IMAGE REFERENCE")
    imagelibrary.add_directory(options)
    imagelibrary.add_servers(options)
    options.add_argument("image", metavar="IMAGE", help="Image from `paddock image ls`: its digest or its source")
    options.add_argument("reference", metavar="REFERENCE", help="Target: docker://registry/name:tag")
    options.add_argument("--arch", default="", metavar="ARCH", help="Architecture to record (default: this host's)")
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
