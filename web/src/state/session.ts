import { signal } from "@preact/signals";
import { get, post, whenSignedOut } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import type { Done, Me } from "../generated/answers";
import * as live from "./live";
import { forgetRights } from "./rights";

export type Session =
  | { state: "unknown" }
  | { state: "signed-in"; me: Me }
  | { state: "signed-out" }
  | { state: "failed"; problem: Problem };

export const session = signal<Session>({ state: "unknown" });

/** Who is signed in; null as long as nobody is. */
export function me(): Me | null {
  return session.value.state === "signed-in" ? session.value.me : null;
}

/** Why a part of the server is missing; empty if it is there. */
export function missing(what: string): string {
  return me()?.missing.find((each) => each.what === what)?.why ?? "";
}

/** Begin a session, with the topics that the first page is going to follow. The rows do not wait for the rights of the user. */
export async function load(topics: readonly live.Topic[] = []): Promise<void> {
  live.start(topics);
  try {
    session.value = { state: "signed-in", me: await get<Me>("me") };
  } catch (thrown) {
    const problem = problemOf(thrown);
    live.stop();
    session.value = problem.code === 401 ? { state: "signed-out" } : { state: "failed", problem };
  }
}

/** End the session. Throws `Problem`. */
export async function signOut(): Promise<void> {
  await post<Done>("logout");
  end();
}

function end(): void {
  live.stop();
  forgetRights();
  session.value = { state: "signed-out" };
}

whenSignedOut(end);
