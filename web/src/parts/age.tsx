import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { age, instant } from "../format/time";
import { now } from "../state/now";

/** How long ago something was, with the exact time on hover. */
export function Age({ time }: { time: string }) {
  if (!time) return <span class="quiet">–</span>;
  return (
    <time dateTime={time} title={instant(time)}>
      {age(time, now.value)}
    </time>
  );
}

/** How long something has been going on, to the second. */
export function Elapsed({ since }: { since: string }) {
  const at = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => (at.value = Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <time dateTime={since}>{age(since, at.value)}</time>;
}
