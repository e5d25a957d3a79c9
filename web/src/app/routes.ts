import { computed, signal } from "@preact/signals";

/** What the part of the address behind `#` names. */
export interface Route {
  /** `machines`, `machine`, `images`, …, `host`, `settings` */
  page: string;
  /** the place of a machine, for the page `machine` */
  place: string;
  /** what follows the page, such as the tab of a machine */
  rest: string;
  query: Readonly<Record<string, string>>;
}

const PLACE_SEGMENTS = 3;

/** Read an address such as `#/machines/vm/default/web/console?window=1`. */
export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#?\/?/, "").split("?");
  const segments = path.split("/").filter(Boolean).map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [page = "machines", ...rest] = segments;
  if (page === "machines" && rest.length >= PLACE_SEGMENTS) {
    const place = rest.slice(0, PLACE_SEGMENTS).join("/");
    return { page: "machine", place, rest: rest.slice(PLACE_SEGMENTS).join("/"), query };
  }
  return { page, place: "", rest: rest.join("/"), query };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The address of a page, for links. */
export function link(path: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  return `#/${path.split("/").map(encodeURIComponent).join("/")}${search && `?${search}`}`;
}

/** The address of a machine, or of one of its tabs. */
export const machineLink = (place: string, tab = ""): string => link(`machines/${place}${tab && `/${tab}`}`);

const hash = signal(typeof location === "undefined" ? "" : location.hash);
if (typeof addEventListener === "function") addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed(() => parse(hash.value));

/** Go to a page. `replace` leaves no entry in the history, as for a tab or a filter. */
export function go(address: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  hash.value = location.hash;
}
