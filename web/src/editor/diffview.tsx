import { countsOf, diffLines, hunksOf, type LineKind } from "./diff";
import { several } from "../format/amounts";

const SIGNS: Readonly<Record<LineKind, string>> = { same: " ", added: "+", removed: "−" };
const WORDS: Readonly<Record<LineKind, string>> = { same: "", added: "added: ", removed: "removed: " };

/** The lines that differ, with a few around them. */
export function DiffView({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = diffLines(before, after);
  const hunks = hunksOf(lines);
  const { added, removed } = countsOf(lines);
  if (hunks.length === 0) return <p class="quiet diff-none">The texts are the same.</p>;
  return (
    <div class="diff">
      <p class="small quiet">
        {label}: {several(added, "line")} added, {removed} removed
      </p>
      <div class="diff-scroll" tabIndex={0} role="region" aria-label={label}>
        <table class="diff-table">
          <tbody>
            {hunks.map((hunk, index) => [
              hunk.skipped > 0 && (
                <tr key={`skip ${index}`} class="diff-skip">
                  <td colSpan={4}>{several(hunk.skipped, "line")} as before</td>
                </tr>
              ),
              ...hunk.lines.map((line) => (
                <tr key={`${line.before} ${line.after}`} class={`diff-${line.kind}`}>
                  <td class="diff-number">{line.before || ""}</td>
                  <td class="diff-number">{line.after || ""}</td>
                  <td class="diff-sign" aria-hidden="true">
                    {SIGNS[line.kind]}
                  </td>
                  <td class="diff-text">
                    {line.kind !== "same" && <span class="for-readers">{WORDS[line.kind]}</span>}
                    {line.text}
                  </td>
                </tr>
              )),
            ])}
          </tbody>
        </table>
      </div>
    </div>
  );
}
