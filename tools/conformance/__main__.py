"""``python -m tools.conformance --results FILE [--check]``: writes the pages of conformance and providers, or says which is stale."""

import argparse
import sys
from pathlib import Path

from tools.conformance import checklist, currency, engine, page, providers, reasons, results, verdict
from tools.gate.plugin import digests

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
    seldom = [result for path in (options.reference, options.host) if path.exists() for result in results.read(path)]
    tested = (*results.read(options.results), *seldom)
    verdicts = verdict.decide(checklists, tested, why, guests)
    outdated = reasons.outdated(why, verdict.met(verdicts))
    for spec, key in outdated:
        print(f'conformance: all of {spec} "{key}" is met; take the line out of unmet.toml', file=sys.stderr)
    pages = {options.page: page.render(verdicts), options.providers: providers.render(tested)}
    stale = [path for path, text in pages.items() if not path.exists() or currency.without(path.read_text(encoding="utf-8")) != text]
    if options.check and stale:
        names = ", ".join(map(str, stale))
        print(f"conformance: {names} is not what this run gives; `make conformance` writes it", file=sys.stderr)
        return 1
    if not options.check:
        pages[options.page] += currency.render(verdicts, seldom, digests(ROOT, {result.file for result in seldom}))
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
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
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "evidence" / "conformance.md")
    parser.add_argument("--providers", type=Path, default=ROOT / "docs" / "reference" / "providers.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
