"""`paddock image ls`: lists the images of this host, and the names that `pull` knows."""

import json
from datetime import UTC, datetime
from typing import Any

from paddock.app.directory import imagelibrary
from paddock.cli import arguments
from paddock.cli.console import Console, one_line
from paddock.engine.images import catalogue
from paddock.engine.images.library import ImageRecord

TEXT = "List the images of this host, or the names that `paddock image pull` knows."


def run(given: list[str], console: Console) -> int:
    """Print the list."""
    options = arguments.parser("image ls", TEXT)
    imagelibrary.add_directory(options)
    imagelibrary.add_pools(options)
    options.add_argument("--known", action="store_true", help="List the names that `paddock image pull` knows")
    arguments.add_choice(options, ("-o", "--output"), ("text", "json"), "Output format (default: text)", "text")
    parsed = options.parse_args(given)
    if parsed.known:
        width = max(map(len, catalogue.KNOWN))
        text = "".join(f"{name:<{width}}  {place}\n" for name, place in sorted(catalogue.KNOWN.items()))
        console.out(json.dumps(dict(catalogue.KNOWN), indent=2) + "\n" if parsed.output == "json" else text)
        return 0
    records = imagelibrary.records(parsed)
    used = imagelibrary.used(parsed)
    if parsed.output == "json":
        console.out(json.dumps([_data(record, used) for record in records], indent=2) + "\n")
    else:
        console.out(_table(records, used))
    return 0


def _table(records: list[ImageRecord], used: set[str]) -> str:
    rows = [("DIGEST", "FORMAT", "SIZE", "ON DISK", "USED", "LAST ASKED FOR", "SOURCE")]
    for record in sorted(records, key=lambda record: record.used, reverse=True):
        image = record.image
        asked = datetime.fromtimestamp(record.used, UTC).strftime("%Y-%m-%d %H:%M")
        cells = (image.digest[:12], image.format, imagelibrary.size(image.virtual_size), imagelibrary.size(image.stored_size))
        first = one_line(record.sources[0]) if record.sources else "-"
        rows.append((*cells, "yes" if image.digest in used else "no", asked, first))
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
        "lastAskedFor": datetime.fromtimestamp(record.used, UTC).isoformat(timespec="seconds"),
        "sources": list(record.sources),
    }
