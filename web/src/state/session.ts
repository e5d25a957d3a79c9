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

export async function load(): Promise<void> {
  try {
    session.value = { state: "signed-in", me: await get<Me>("me") };
    live.start();
  } catch (thrown) {
    const problem = problemOf(thrown);
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
