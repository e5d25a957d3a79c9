"""`paddock image ls`: lists the images of this host, and the names that `pull` knows."""

import time
from datetime import UTC, datetime
from typing import Any

from paddock.app.directory import imagelibrary
from paddock.base.images import catalogue, pins
from paddock.base.images.library import ImageRecord
from paddock.base.lines import one_line
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.documents import report
from paddock.kubernetes.meta import ages

_FORMATS = ("text", "wide", "json", "yaml", "name")
TEXT = "List the images of this host, or the names that `paddock image pull` knows."


def parser() -> Parser:
    options = arguments.parser("image ls", TEXT)
    imagelibrary.add_directory(options)
    imagelibrary.add_pools(options)
    options.add_argument("--known", action="store_true", help="List the names that `paddock image pull` knows")
    arguments.add_choice(options, ("-o", "--output"), _FORMATS, "Output format (default: text)", "text")
    return options


def run(argv: list[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    if parsed.known:
        _known(parsed.output, console)
        return 0
    records = sorted(imagelibrary.records(parsed), key=lambda record: record.used, reverse=True)
    used = imagelibrary.used(parsed)
    if parsed.output in ("json", "yaml"):
        console.out(report.structured([_data(record, used) for record in records], parsed.output))
    elif parsed.output == "name":
        console.out("".join(f"sha256:{record.image.digest}\n" for record in records))
    else:
        console.out(table(records, used, time.time(), wide=parsed.output == "wide"))
    return 0


def _known(output: str, console: Console) -> None:
    if output in ("json", "yaml"):
        console.out(report.structured(dict(catalogue.KNOWN), output))
        return
    width = 0 if output == "name" else max(map(len, catalogue.KNOWN))
    for name, place in sorted(catalogue.KNOWN.items()):
        known = sorted(arch for pinned, arch in pins.pins() if pinned == name)
        checked = f"checksum ({', '.join(known)})" if known else "TLS"
        console.out(f"{name:<{width}}  {checked:<16}  {place}\n" if width else f"{name}\n")


def table(records: list[ImageRecord], used: set[str], now: float, *, wide: bool = False) -> str:
    """Return the images as a table: the sizes that the guest sees and that the host pays, their use and their age."""
    rows = [("DIGEST", "FORMAT", "SIZE", "ON DISK", "USED", "AGE", "LAST USE", "SOURCE")]
    for record in records:
        image = record.image
        digest = image.digest if wide else image.digest[:12]
        cells = (digest, image.format, imagelibrary.size(image.virtual_size), imagelibrary.size(image.stored_size))
        times = (ages.since(record.created, now), ages.since(record.used, now))
        sources = record.sources if wide else record.sources[:1]
        rows.append((*cells, "yes" if image.digest in used else "no", *times, ", ".join(map(one_line, sources)) or "-"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)


def _data(record: ImageRecord, used: set[str]) -> dict[str, Any]:
    image = record.image
    return {
        "digest": f"sha256:{image.digest}",
        "format": image.format,
        "virtualSize": image.virtual_size,
        "storedSize": image.stored_size,
        "path": str(image.path),
        "used": image.digest in used,
        "created": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds"),
        "lastAskedFor": datetime.fromtimestamp(record.used, UTC).isoformat(timespec="seconds"),
        "sources": list(record.sources),
    }
