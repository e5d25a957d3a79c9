// A family, and the two letters that stand for it.
const FAMILIES: readonly [family: string, letters: string, pattern: RegExp][] = [
  ["debian", "De", /debian/i],
  ["ubuntu", "Ub", /ubuntu/i],
  ["fedora", "Fe", /fedora/i],
  ["alpine", "Al", /alpine/i],
  ["rocky", "Ro", /rocky/i],
  ["alma", "Am", /alma/i],
  ["opensuse", "Su", /suse/i],
  ["arch", "Ar", /arch/i],
  ["windows", "Wi", /windows/i],
  ["freebsd", "Fb", /freebsd/i],
  ["openbsd", "Ob", /openbsd/i],
  ["netbsd", "Nb", /netbsd/i],
  ["centos", "Ce", /centos/i],
  ["redhat", "Rh", /red ?hat|rhel/i],
  ["talos", "Ta", /talos/i],
  ["flatcar", "Fc", /flatcar/i],
];

/** The family of an operating system and two letters for it. */
export function osFamily(name: string): { family: string; letters: string } {
  const found = FAMILIES.find(([, , pattern]) => pattern.test(name));
  return found ? { family: found[0], letters: found[1] } : { family: "other", letters: name.slice(0, 1).toUpperCase() + name.slice(1, 2) || "?" };
}

/** A mark beside the name of an operating system. */
export function OsMark({ name }: { name: string }) {
  const { family, letters } = osFamily(name);
  return (
    <span class={`os ${family}`} aria-hidden="true">
      {letters}
    </span>
  );
}
