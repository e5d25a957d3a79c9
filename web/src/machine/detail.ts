/** A machine as the server knows it now. */

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { type Problem, problemOf } from "../api/problem";

export interface Reading<T> {
  value: T | null;
  problem: Problem | null;
  reload: () => void;
}

const SETTLE_MS = 250;
const EVERY_MS = 20_000;

/** Reads `path` again whenever `mark` changes, at intervals while the page is visible, and when asked. Old values stay until new ones arrive. */
export function useReading<T>(path: string, mark: unknown, { everyMs = EVERY_MS, query = "" }: { everyMs?: number; query?: string } = {}): Reading<T> {
  const whole = `${path}?${query}`;
  const [state, setState] = useState<{ path: string; value: T | null; problem: Problem | null }>({ path: whole, value: null, problem: null });
  const [count, setCount] = useState(0);
  const first = useRef("");
  useEffect(() => {
    const abort = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const value = await get<T>(path, Object.fromEntries(new URLSearchParams(query)), abort.signal);
        if (!abort.signal.aborted) setState({ path: whole, value, problem: null });
      } catch (thrown) {
        if (!abort.signal.aborted) setState((before) => ({ path: whole, value: before.path === whole ? before.value : null, problem: problemOf(thrown) }));
      }
    };
    // Several changes in a row make one request; the first one does not wait.
    const pause = first.current === whole ? SETTLE_MS : 0;
    first.current = whole;
    const start = setTimeout(() => void read(), pause);
    const timer = setInterval(() => document.visibilityState === "visible" && void read(), everyMs);
    return () => {
      abort.abort();
      clearTimeout(start);
      clearInterval(timer);
    };
  }, [path, query, mark, count, everyMs]);
  const fresh = state.path === whole ? state : { value: null, problem: null };
  return { value: fresh.value, problem: fresh.problem, reload: () => setCount((before) => before + 1) };
}
