import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Age } from "../parts/age";
import { hideAll } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icon";
import { connection, reconnect, rowsOf } from "../state/live";
import { namespace, theme } from "../state/preferences";
import { me } from "../state/session";
import { colours } from "../state/theme";
import { Brand } from "./brand";
import { openPalette } from "./keys";
import { link, route } from "./routes";
import { TaskBar } from "./taskbar";

export interface Place {
  page: string;
  text: string;
  icon: IconName;
}

/** The pages of the console in the groups of the menu. */
export const PLACES: readonly { title: string; places: readonly Place[] }[] = [
  { title: "", places: [{ page: "machines", text: "Machines", icon: "machine" }] },
  {
    title: "Storage",
    places: [
      { page: "images", text: "Images", icon: "image" },
      { page: "volumes", text: "Volumes", icon: "disk" },
      { page: "snapshots", text: "Snapshots", icon: "snapshot" },
    ],
  },
  {
    title: "Infrastructure",
    places: [
      { page: "networks", text: "Networks", icon: "network" },
      { page: "pools", text: "Pools", icon: "pool" },
      { page: "providers", text: "Providers", icon: "provider" },
      { page: "migrations", text: "Migrations", icon: "migration" },
    ],
  },
  {
    title: "Operation",
    places: [
      { page: "events", text: "Events", icon: "event" },
      { page: "host", text: "Host", icon: "host" },
    ],
  },
];

const SETTINGS: Place = { page: "settings", text: "Settings", icon: "settings" };

const menuOpen = signal(false);
const here = computed(() => `${route.value.page} ${route.value.place}`);
// Whatever page comes, the menu of a narrow window and a dialog of the page before are in its way.
here.subscribe(() => {
  menuOpen.value = false;
  hideAll();
  if (typeof document !== "undefined") document.title = titleOf(route.value.page, route.value.place);
});

/** The title of the window: what one sees, then where. */
export function titleOf(page: string, place: string): string {
  const name = page === "machine" ? place.split("/").at(-1) : [...PLACES.flatMap((group) => group.places), SETTINGS].find((each) => each.page === page)?.text;
  return name ? `${name} · Paddock` : "Paddock";
}

export function Shell({ children }: { children: ComponentChildren }) {
  return (
    <div class="shell">
      <a class="button skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Side />
      {menuOpen.value && <button type="button" class="veil" aria-label="Close the menu" onClick={() => (menuOpen.value = false)} />}
      <Bar />
      <div class="main">
        <Away />
        {children}
      </div>
      <TaskBar />
    </div>
  );
}

// The part behind # is the router's, so the link cannot do it.
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Side() {
  return (
    <div class={`side${menuOpen.value ? " open" : ""}`} id="menu">
      <a class="brand" href={link("machines")}>
        <Brand />
        Paddock
      </a>
      <nav aria-label="Pages">
        {PLACES.map(({ title, places }) => (
          <>
            {title && <h2>{title}</h2>}
            {places.map((place) => (
              <PlaceLink key={place.page} {...place} />
            ))}
          </>
        ))}
      </nav>
      <div class="side-end">
        <PlaceLink {...SETTINGS} />
      </div>
    </div>
  );
}

function PlaceLink({ page, text, icon }: Place) {
  const current = route.value.page === page || (page === "machines" && route.value.page === "machine");
  return (
    <a class="place" href={link(page)} aria-current={current ? "page" : undefined}>
      <Icon name={icon} />
      {text}
      {page === "machines" && <span class="count">{rowsOf("machines").value.size.toLocaleString("en")}</span>}
    </a>
  );
}

function Bar() {
  const dark = colours.value === "dark";
  return (
    <header class="bar">
      <button
        type="button"
        class="button icon-only menu-button"
        aria-label="Menu"
        aria-expanded={menuOpen.value}
        aria-controls="menu"
        onClick={() => (menuOpen.value = !menuOpen.value)}
      >
        <Icon name="menu" />
      </button>
      <NamespaceSwitch />
      <button type="button" class="button search" aria-label="Search and commands" aria-keyshortcuts="Control+K" onClick={openPalette}>
        <Icon name="search" />
        <span>Search and commands</span>
        <kbd>Ctrl K</kbd>
      </button>
      <button
        type="button"
        class="button icon-only theme"
        aria-label={dark ? "Light colours" : "Dark colours"}
        title={dark ? "Light colours" : "Dark colours"}
        onClick={() => (theme.value = dark ? "light" : "dark")}
      >
        <Icon name={dark ? "sun" : "moon"} />
      </button>
    </header>
  );
}

function NamespaceSwitch() {
  const names = new Set(me()?.namespaces ?? []);
  for (const row of rowsOf("machines").value.values()) names.add(row.namespace);
  if (namespace.value) names.add(namespace.value);
  return (
    <select class="input" aria-label="Namespace" value={namespace.value} onChange={(event) => (namespace.value = event.currentTarget.value)}>
      <option value="">All namespaces</option>
      {[...names].sort().map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** A strip that says that what one sees is old. */
function Away() {
  const { value } = connection;
  if (value.state !== "closed" && value.state !== "lost") return null;
  return (
    <div class="away" role="status">
      <Icon name="warning" />
      {value.state === "lost" ? (
        <span>
          The server is away for <Age time={value.since} />: {value.why}. The rows are the last that are known.
        </span>
      ) : (
        <span>The console does not answer. The rows are the last that are known; the page connects again by itself.</span>
      )}
      <button type="button" class="button small" onClick={reconnect}>
        Connect now
      </button>
    </div>
  );
}
