/** A fence of two rails and three posts. */
export function Brand() {
  return (
    <svg width="22" height="22" viewBox="0 0 22 22" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true">
      <path d="M4 5.5v12M11 4v13.5M18 5.5v12M1.5 9.5h19M1.5 14h19" />
    </svg>
  );
}
