import { weightOf, type Weight } from "../editor/edit";

const WORDS: Readonly<Record<Weight, string>> = { none: "no effect", live: "live", restart: "restart", recreate: "recreate", loss: "data loss" };
const MARKS: Readonly<Record<Weight, string>> = { none: "○", live: "●", restart: "↻", recreate: "◆", loss: "▲" };

/** The effect of a change, in a word, a shape and a colour. */
export function EffectBadge({ effect }: { effect: string }) {
  const weight = weightOf(effect);
  return (
    <span class={`effect ${weight}`}>
      <span aria-hidden="true">{MARKS[weight]}</span> {effect || WORDS[weight]}
    </span>
  );
}
