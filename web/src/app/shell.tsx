import type { ComponentChildren } from "preact";

export function Shell({ children }: { children: ComponentChildren }) {
  return <div class="shell">{children}</div>;
}
