import { refusal, unreachable } from "./problem";

/** Everything is relative to the page, so a proxy may serve it below a path. */
const ROOT = "console/v1/";

/** The address of a resource of the API. Segments are encoded; a place (`vm/default/web`) keeps its slashes. */
export function address(path: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  return `${ROOT}${encoded}${search && `?${search}`}`;
}

/** The address of a WebSocket, such as `sockets/vm/default/web/vnc`. */
export function socketAddress(path: string): string {
  const url = new URL(address(path), document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

type Query = Record<string, string>;

/** Read JSON. Throws `Problem`. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const answer = await request(address(path, query), signal ? { signal } : {});
  return (await answer.json()) as T;
}

/** Read text, such as a log. Throws `Problem`. */
export async function getText(path: string, query: Query = {}, signal?: AbortSignal): Promise<string> {
  const answer = await request(address(path, query), signal ? { signal } : {});
  return answer.text();
}

/** Send JSON and read JSON. Throws `Problem`. */
export async function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  const answer = await request(address(path), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  });
  return (await answer.json()) as T;
}

/** Delete. Throws `Problem`. */
export async function remove<T>(path: string): Promise<T> {
  const answer = await request(address(path), { method: "DELETE" });
  return (await answer.json()) as T;
}

/** Called for each 401: the session is over. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(action: () => void): void {
  onSignedOut = action;
}

async function request(url: string, init: RequestInit): Promise<Response> {
  // No form of another site can send this header.
  const headers = { Accept: "application/json", ...init.headers, "X-Paddock-Console": "1" };
  let answer: Response;
  try {
    answer = await fetch(url, { ...init, headers, credentials: "same-origin", cache: "no-store" });
  } catch (thrown) {
    if (init.signal?.aborted) throw thrown;
    throw unreachable(thrown instanceof Error ? thrown.message : String(thrown));
  }
  if (answer.ok) return answer;
  if (answer.status === 401) onSignedOut();
  throw refusal(answer.status, await answer.json().catch(() => null));
}
