import type { Signal } from "@preact/signals";
import { Icon } from "../parts/icon";
import { isText, remembered } from "../state/preferences";

/** A search that a person gave a name. */
export interface SavedFilter {
  name: string;
  query: string;
}

const areFilters = (value: unknown): value is SavedFilter[] =>
  Array.isArray(value) && value.every((each: unknown) => typeof each === "object" && each !== null && "name" in each && "query" in each && isText(each.name) && isText(each.query));

export const savedFilters = remembered<SavedFilter[]>("filters", [], areFilters);

/** Chips of saved searches, and a button that saves the present one. */
export function SavedFilters({ query }: { query: Signal<string> }) {
  const text = query.value.trim();
  const known = savedFilters.value.some((each) => each.query === text);
  return (
    <>
      {savedFilters.value.map((filter) => (
        <span key={filter.query} class="chip-pair">
          <button type="button" class="chip" aria-pressed={filter.query === text} title={filter.query} onClick={() => (query.value = filter.query === text ? "" : filter.query)}>
            <Icon name="filter" size={12} />
            {filter.name}
          </button>
          <button
            type="button"
            class="chip"
            aria-label={`Forget the filter ${filter.name}`}
            onClick={() => (savedFilters.value = savedFilters.value.filter((each) => each !== filter))}
          >
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      {text && !known && (
        <button type="button" class="chip" onClick={() => (savedFilters.value = [...savedFilters.value, { name: text, query: text }])}>
          <Icon name="add" size={12} />
          Save this filter
        </button>
      )}
    </>
  );
}
