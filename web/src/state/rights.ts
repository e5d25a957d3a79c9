import { type Signal, signal } from "@preact/signals";
import { get } from "../api/client";
import type { Rights } from "../generated/answers";

/** The verbs that the user may not carry out, each with the reason. */
type Lacks = ReadonlyMap<string, string>;

interface Answer {
  at: number;
  lacks: Signal<Lacks>;
}

// The server remembers its answers as long.
const FRESH_MS = 60_000;
const answers = new Map<string, Answer>();

function answerOf(place: string): Answer {
  const about = place.split("/").slice(0, 2).join("/");
  let found = answers.get(about);
  if (!found) {
    found = { at: 0, lacks: signal<Lacks>(new Map()) };
    answers.set(about, found);
  }
  return found;
}

/** Why the user may not carry out a verb on a machine, or on any of its kind in its namespace (`vm/default`); empty if nothing is known against it. */
export const lackOf = (place: string, verb: string): string => answerOf(place).lacks.value.get(verb) ?? "";

/** Ask what the user may do with machines of a kind in a namespace, unless that is known. Without an answer the server judges the act itself. */
export function askRights(place: string): void {
  const answer = answerOf(place);
  if (Date.now() - answer.at < FRESH_MS) return;
  answer.at = Date.now();
  const [word = "", namespace = ""] = place.split("/");
  get<Rights>(`rights/${word}/${namespace}`).then(
    ({ missing }) => (answer.lacks.value = new Map(missing.map(({ what, why }) => [what, why]))),
    () => (answer.at = 0),
  );
}

/** Forget all answers: the next person has other rights. */
export function forgetRights(): void {
  for (const answer of answers.values()) {
    answer.at = 0;
    answer.lacks.value = new Map();
  }
}
