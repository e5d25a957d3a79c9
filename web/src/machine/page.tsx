import { useEffect } from "preact/hooks";
import { go, link, machineLink, route } from "../app/routes";
import { lazy } from "../app/lazy";
import type { MachineDetail, MachineRow } from "../generated/answers";
import { Icon } from "../parts/icon";
import { ProblemNote } from "../parts/problemnote";
import { loadSheet } from "../parts/sheet";
import { Spinner } from "../parts/spinner";
import { StateBadge } from "../parts/statebadge";
import { type Tab, tabId, Tabs } from "../parts/tabs";
import { useTopic } from "../state/live";
import { AccessCard, Screenshot } from "./access";
import { Actions } from "./actions";
import { CloudInitView } from "./cloudinit";
import { useReading } from "./detail";
import { EventList, HistoryList } from "./events";
import { GraphView } from "./graph";
import { Guest } from "./guest";
import { Conditions, Disks, Interfaces } from "./hardware";
import sheet from "./machine.css?sheet";
import { OverviewCard } from "./overview";
import { Pending } from "./pending";
import { Snapshots } from "./snapshots";
import { WhyPanel } from "./why";

await loadSheet(sheet);

const UsageView = lazy(() => import("../charts/usage").then((module) => module.UsageView));
const SerialConsole = lazy(() => import("../console/serial").then((module) => module.SerialConsole));
const GraphicalConsole = lazy(() => import("../console/graphical").then((module) => module.GraphicalConsole));
const EditorPanel = lazy(() => import("../editor/panel").then((module) => module.EditorPanel));

/** One machine. */
export function MachinePage({ place }: { place: string }) {
  const row = useTopic("machines").value.get(place);
  const { value: detail, problem, reload } = useReading<MachineDetail>(`machines/${place}`, row);
  const { query, rest: tab } = route.value;
  const shown = row ?? detail?.row;
  useEffect(() => {
    if (shown) document.title = `${shown.name} · Paddock`;
  }, [shown?.name]);
  if (query["window"] === "1") return <Detached place={place} row={shown} tab={tab} />;
  return (
    <main class="page machine-page" id="main" tabIndex={-1}>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={link("machines")}>Machines</a> <span aria-hidden="true">/</span> <span>{place.split("/")[1]}</span>
      </nav>
      {detail && shown ? (
        <Content place={place} row={shown} detail={detail} reload={reload} tab={tab || "overview"} />
      ) : problem ? (
        <>
          <h1>{place}</h1>
          <ProblemNote problem={problem} again={reload} />
        </>
      ) : (
        <Spinner label="Reading the machine" />
      )}
    </main>
  );
}

/** Tabs that take the height that the window has left. */
const FILLING: ReadonlySet<string> = new Set(["console", "screen", "yaml"]);

interface ContentProps {
  place: string;
  row: MachineRow;
  detail: MachineDetail;
  reload: () => void;
  tab: string;
}

function tabsOf(detail: MachineDetail): Tab[] {
  return [
    { id: "overview", text: "Overview", count: detail.pending.length },
    { id: "usage", text: "Usage" },
    { id: "console", text: "Console" },
    { id: "screen", text: "Screen" },
    { id: "snapshots", text: "Snapshots", count: detail.snapshots.length },
    { id: "yaml", text: "YAML" },
    { id: "events", text: "Events" },
    { id: "boot", text: "Cloud-init" },
    { id: "related", text: "Related" },
  ];
}

function Content({ place, row, detail, reload, tab }: ContentProps) {
  const tabs = tabsOf(detail);
  const chosen = tabs.some((each) => each.id === tab) ? tab : "overview";
  return (
    <>
      <header class="machine-head">
        <div class="machine-title">
          <h1>{row.name}</h1>
          <StateBadge state={row.state} status={row.status} reason={row.reason} />
          {row.protected && (
            <span class="tag">
              <Icon name="lock" size={12} /> protected
            </span>
          )}
        </div>
        <Actions place={place} detail={detail} reload={reload} />
      </header>
      <Tabs label={`Parts of ${row.name}`} tabs={tabs} chosen={chosen} choose={(id) => go(machineLink(place, id === "overview" ? "" : id), { replace: true })} />
      <div class={`machine-panel${FILLING.has(chosen) ? " fill" : ""}`} role="tabpanel" aria-labelledby={tabId(chosen)} key={chosen}>
        <Panel {...{ place, row, detail, reload }} tab={chosen} />
      </div>
    </>
  );
}

function Panel({ place, row, detail, reload, tab }: ContentProps) {
  switch (tab) {
    case "usage":
      return <UsageView place={place} row={row} />;
    case "console":
      return <SerialConsole place={place} row={row} />;
    case "screen":
      return <GraphicalConsole place={place} row={row} />;
    case "snapshots":
      return <Snapshots place={place} detail={detail} reload={reload} />;
    case "yaml":
      return <EditorPanel detail={detail} reload={reload} />;
    case "events":
      return (
        <>
          <EventList place={place} row={row} />
          <HistoryList place={place} row={row} />
        </>
      );
    case "boot":
      return <CloudInitView place={place} cloudInit={detail.cloudInit} />;
    case "related":
      return <GraphView graph={detail.graph} place={place} />;
    default:
      return <Overview place={place} row={row} detail={detail} />;
  }
}

function Overview({ place, row, detail }: { place: string; row: MachineRow; detail: MachineDetail }) {
  return (
    <>
      <WhyPanel place={place} row={row} />
      <Pending pending={detail.pending} />
      <div class="machine-grid">
        <div class="machine-column">
          <OverviewCard detail={{ ...detail, row }} />
          <Guest guest={detail.guest} />
        </div>
        <div class="machine-column">
          <Screenshot row={row} />
          <AccessCard access={detail.access} />
        </div>
        <Disks disks={detail.disks} />
        <Interfaces nics={detail.nics} />
        <Conditions conditions={detail.conditions} />
      </div>
    </>
  );
}

/** A window with a console and nothing else. */
function Detached({ place, row, tab }: { place: string; row: MachineRow | undefined; tab: string }) {
  if (!row) return <Spinner label="Reading the machine" />;
  return (
    <main class="detached-page" id="main" tabIndex={-1}>
      <h1 class="for-readers">{row.name}</h1>
      {tab === "screen" ? <GraphicalConsole place={place} row={row} detached /> : <SerialConsole place={place} row={row} detached />}
    </main>
  );
}
