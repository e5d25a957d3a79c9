import { link, route } from "./routes";
import { lazy } from "./lazy";

const MachineList = lazy(() => import("../machines/page").then((module) => module.MachineList));
const MachinePage = lazy(() => import("../machine/page").then((module) => module.MachinePage));

/** The page that the address names. */
export function Pages() {
  const { page, place } = route.value;
  switch (page) {
    case "machines":
      return <MachineList />;
    case "machine":
      return <MachinePage key={place} place={place} />;
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
