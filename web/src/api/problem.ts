import type { ErrorBody } from "../generated/answers";

/** A request that failed, in the words of the server: what failed, why, and what to do. */
export class Problem extends Error {
  constructor(readonly body: ErrorBody) {
    super(body.message);
    this.name = "Problem";
  }

  get why(): string {
    return this.body.why;
  }

  get fix(): string {
    return this.body.fix;
  }

  get code(): number {
    return this.body.code;
  }
}

/** Anything that was thrown, as a problem. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof Problem) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new Problem({ message, why: "", fix: "", code: 0 });
}

/** The problem of an answer that is no success. `body` is what JSON it had, if any. */
export function refusal(status: number, body: unknown): Problem {
  if (isEnvelope(body)) return new Problem({ ...body.error, code: body.error.code || status });
  const fix = status >= 500 ? "Try again. If it stays, read the log of the console." : "Reload the page; it may be older than the server.";
  return new Problem({ message: `The console answered with status ${status}`, why: "The answer has no explanation.", fix, code: status });
}

export const unreachable = (why: string): Problem =>
  new Problem({
    message: "The console cannot be reached",
    why,
    fix: "Check that “paddock ui” or “paddock up --ui” still runs. The page connects again by itself.",
    code: 0,
  });

function isEnvelope(body: unknown): body is { error: ErrorBody } {
  if (typeof body !== "object" || body === null || !("error" in body)) return false;
  const { error } = body;
  return typeof error === "object" && error !== null && "message" in error && typeof error.message === "string";
}
