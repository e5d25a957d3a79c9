import { signal } from "@preact/signals";

const STEP_MS = 10_000;

/** The present, as precise as ages in tables need it. */
export const now = signal(Date.now());

if (typeof window !== "undefined") setInterval(() => (now.value = Date.now()), STEP_MS);
