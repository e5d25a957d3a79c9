/** What a search can see of a row. */
export interface Searchable {
  /** all that words without a field are looked for in */
  text: string;
  /** values by the name of a field: `state`, `node`, `label` */
  fields: Readonly<Record<string, readonly string[]>>;
}

interface Term {
  field: string;
  value: string;
  not: boolean;
}

/**
 * Read a search. Words must all occur; `field:value` looks in one field, `-` in front turns a term round, and quotes keep blanks:
 * `web state:bad label:tier=batch -node:rack2 "two words"`.
 */
export function parseQuery(text: string): Term[] {
  const terms: Term[] = [];
  for (const match of text.matchAll(/(-?)(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/gi)) {
    const [, minus, field = "", quoted, plain] = match;
    const value = (quoted ?? plain ?? "").toLowerCase();
    if (value) terms.push({ field: field.toLowerCase(), value, not: minus === "-" });
  }
  return terms;
}

/** A test for rows. A field that no row has is part of the text, so that addresses such as `fd00::1` are found. */
export function matcher(text: string, known: readonly string[]): (row: Searchable) => boolean {
  const terms = parseQuery(text).map((term) => (term.field && !known.includes(term.field) ? { ...term, field: "", value: `${term.field}:${term.value}` } : term));
  return (row) => terms.every((term) => holds(term, row) !== term.not);
}

function holds({ field, value }: Term, row: Searchable): boolean {
  if (!field) return row.text.toLowerCase().includes(value);
  return (row.fields[field] ?? []).some((each) => each.toLowerCase().includes(value));
}
