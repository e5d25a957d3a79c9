import { link, route } from "./routes";
import { MachineList } from "../machines/page";
import { isObjectTopic } from "../topics/topics";
import { lazy } from "./lazy";

const MachinePage = lazy(() => import("../machine/page").then((module) => module.MachinePage));

const TopicPage = lazy(() => import("../topics/page").then((module) => module.TopicPage));
const EventPage = lazy(() => import("../topics/page").then((module) => module.EventPage));
const HostPage = lazy(() => import("../host/page").then((module) => module.HostPage));
const SettingsPage = lazy(() => import("../settings/page").then((module) => module.SettingsPage));

/** The page that the address names. */
export function Pages() {
  const { page, place } = route.value;
  if (isObjectTopic(page)) return <TopicPage key={page} topic={page} />;
  switch (page) {
    case "machines":
      return <MachineList />;
    case "machine":
      return <MachinePage key={place} place={place} />;
    case "events":
      return <EventPage />;
    case "host":
      return <HostPage />;
    case "settings":
      return <SettingsPage />;
    default:
      return (
        <main class="page" id="main" tabIndex={-1}>
          <h1>No such page</h1>
          <p>
            The address names nothing that the console has. <a href={link("machines")}>Go to the machines.</a>
          </p>
        </main>
      );
  }
}
