/** The state of an edit: what may be saved, and what saving means. Pure. */

import type { Finding, Plan, PlannedChange } from "../generated/answers";

export interface Edit {
  /** The stored text that the edit began with. */
  base: string;
  /** The text in the editor. */
  draft: string;
  /** The stored text now. */
  stored: string;
}

export function isDirty(edit: Edit): boolean {
  return edit.draft !== edit.base;
}

/** Somebody else wrote the object since the edit began. */
export function isBehind(edit: Edit): boolean {
  return significant(edit.stored) !== significant(edit.base);
}

/** A text without the version of a stored object is applied field by field, whoever has set them. */
export function isUnread(yaml: string): boolean {
  return !/^ {2}resourceVersion:/m.test(yaml);
}

/** The stored object has another generation, which a save has to carry, although nobody changed what the edit is about. */
export function isRenumbered(edit: Edit): boolean {
  return !isBehind(edit) && generationOf(edit.stored) !== generationOf(edit.base);
}

function generationOf(yaml: string): string {
  return /^ {2}generation: *(\S+)/m.exec(yaml)?.[1] ?? "";
}

/** Without what the server counts up at every write of a status. */
function significant(yaml: string): string {
  const lines = yaml.split("\n");
  const status = lines.findIndex((line) => line.startsWith("status:"));
  const next = status < 0 ? -1 : lines.findIndex((line, index) => index > status && /^[^\s#-]/.test(line));
  const kept = status < 0 ? lines : [...lines.slice(0, status), ...(next < 0 ? [] : lines.slice(next))];
  return kept.filter((line) => !/^ {2}(resourceVersion|generation):/.test(line)).join("\n");
}

/** Why the edit cannot be saved now; empty if it can. */
export function refusalOf(edit: Edit, plan: Plan | null, planned: string, readOnly: string): string {
  if (readOnly) return readOnly;
  if (!isDirty(edit)) return "Nothing has changed yet.";
  if (planned !== edit.draft || !plan) return "The plan of this edit is not ready yet.";
  const errors = plan.findings.filter((finding) => finding.severity === "error").length;
  if (errors > 0) return errors === 1 ? "Correct the error in the text first." : `Correct the ${errors} errors in the text first.`;
  return "";
}

export type Weight = "none" | "live" | "restart" | "recreate" | "loss";

const WEIGHTS: readonly Weight[] = ["none", "live", "restart", "recreate", "loss"];

/** The effects of `plan` in the words of the server. One that the page does not know counts as a restart. */
export function weightOf(effect: string): Weight {
  switch (effect) {
    case "no effect":
    case "none":
    case "":
      return "none";
    case "live":
      return "live";
    case "recreate":
      return "recreate";
    case "data loss":
      return "loss";
    default:
      return "restart";
  }
}

export function heaviestOf(changes: readonly PlannedChange[]): Weight {
  return changes.map((change) => weightOf(change.effect)).reduce<Weight>((most, each) => (WEIGHTS.indexOf(each) > WEIGHTS.indexOf(most) ? each : most), "none");
}

/** The question before a save; empty if none is needed. */
export function questionOf(plan: Plan): string {
  const heaviest = heaviestOf(plan.changes);
  if (heaviest === "loss") return "This edit loses data.";
  if (heaviest === "recreate") return plan.running ? "This edit makes the machine anew." : "";
  return "";
}

/** Findings in the order of the text, the worst first within a line. */
export function ordered(findings: readonly Finding[]): Finding[] {
  const weight = { error: 0, warning: 1, note: 2 } as const;
  return [...findings].sort((one, other) => one.line - other.line || weight[one.severity] - weight[other.severity] || one.column - other.column);
}

/** Offsets of a finding in a text: from its column to the end of the line, without the spaces around it. */
export function spanOf(text: string, line: number, column: number): { from: number; to: number } {
  const lines = text.split("\n");
  const index = Math.max(0, Math.min(lines.length, line) - 1);
  const start = lines.slice(0, index).reduce((sum, each) => sum + each.length + 1, 0);
  const content = lines[index] ?? "";
  const end = content.trimEnd().length;
  const first = Math.min(Math.max(column - 1, content.length - content.trimStart().length), end);
  return { from: start + first, to: start + Math.max(first, end) };
}
