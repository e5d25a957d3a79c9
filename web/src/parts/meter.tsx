interface MeterProps {
  /** what is measured, for people who do not see it */
  label: string;
  /** from 0 to 1; less than 0 is not known */
  part: number;
  text: string;
  /** nearly full is good news */
  progress?: boolean;
}

const HIGH = 0.9;

/** A small bar with a text beside it. */
export function Meter({ label, part, text, progress = false }: MeterProps) {
  const known = part >= 0;
  const percent = Math.round(Math.min(1, Math.max(0, part)) * 100);
  return (
    <span
      class={part >= HIGH && !progress ? "meter high" : "meter"}
      role={progress ? "progressbar" : "meter"}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={known ? percent : 0}
      aria-valuetext={known ? text : "not known"}
      style={{ "--part": `${percent}%` }}
    >
      {text}
    </span>
  );
}
