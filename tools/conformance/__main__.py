"""``python -m tools.conformance --results FILE [--check]``: writes the conformance page, or says that it is stale."""

import argparse
import sys
from pathlib import Path

from tools.conformance import checklist, engine, page, reasons, results, verdict

ROOT = Path(__file__).resolve().parent.parent.parent


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if not options.results.exists():
        print(f"conformance: {options.results} does not exist; `make test` writes it", file=sys.stderr)
        return 1
    try:
        checklists = checklist.read_checklists(options.specs)
        totals = {spec: len(items) for spec, items in checklists.items()}
        why = reasons.read_reasons(options.specs / "unmet.toml", totals)
        guests = engine.read_items(options.specs / "engine.toml", totals)
    except (checklist.ChecklistError, reasons.ReasonsError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 1
    elsewhere = (path for path in (options.reference, options.host) if path.exists())
    tested = (*results.read(options.results), *(result for path in elsewhere for result in results.read(path)))
    verdicts = verdict.decide(checklists, tested, why, guests)
    outdated = reasons.outdated(why, verdict.met(verdicts))
    for spec, key in outdated:
        print(f'conformance: all of {spec} "{key}" is met; take the line out of unmet.toml', file=sys.stderr)
    text = page.render(verdicts)
    current = options.page.exists() and options.page.read_text(encoding="utf-8") == text
    if options.check and not current:
        print(f"conformance: {options.page} is not what this run gives; `make conformance` writes it", file=sys.stderr)
        return 1
    if not current:
        options.page.parent.mkdir(parents=True, exist_ok=True)
        options.page.write_text(text, encoding="utf-8")
    for spec, found in verdicts.items():
        print(f"{spec:12} {sum(one.met for one in found):4} of {len(found)}")
    return 1 if outdated else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="what the test run recorded")
    parser.add_argument("--reference", type=Path, default=ROOT / "tests" / "reference" / "results.json", help="what real clients showed")
    parser.add_argument("--host", type=Path, default=ROOT / "tests" / "host" / "results.json", help="what real guests showed")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is stale")
    parser.add_argument("--specs", type=Path, default=ROOT / "docs" / "spec")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "reference" / "conformance.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
