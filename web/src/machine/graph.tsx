import { useMemo, useRef, useState } from "preact/hooks";
import { go, machineLink } from "../app/routes";
import type { Graph } from "../generated/answers";
import { StateMark } from "../parts/statebadge";
import { BOX, layoutOf, neighbourOf, type PlacedNode } from "./graphlayout";

const LONGEST_KIND = 26;
const LONGEST_NAME = 22;
const LONGEST_STATUS = 24;

/** Related objects as a picture. Arrow keys walk from object to object; Enter opens a machine. */
export function GraphView({ graph, place }: { graph: Graph; place: string }) {
  const layout = useMemo(() => layoutOf(graph), [graph]);
  const own = layout.nodes.find((each) => each.node.machine === place) ?? layout.nodes[0];
  const [chosen, setChosen] = useState("");
  const current = layout.nodes.some((each) => each.node.id === chosen) ? chosen : (own?.node.id ?? "");
  const picture = useRef<SVGSVGElement>(null);
  const move = (event: KeyboardEvent): void => {
    const next = neighbourOf(layout, current, event.key);
    if (!next) return;
    event.preventDefault();
    setChosen(next);
    picture.current?.querySelector<SVGElement>(`[data-id="${CSS.escape(next)}"]`)?.focus();
  };
  return (
    <section class="card wide" aria-labelledby="graph-title">
      <h2 id="graph-title">Related objects</h2>
      {layout.nodes.length === 0 ? (
        <p class="quiet">The machine has no related objects.</p>
      ) : (
        <div class="graph-scroll" tabIndex={0} role="region" aria-label="Picture of the related objects">
          <svg ref={picture} class="graph" width={layout.width} height={layout.height} viewBox={`0 0 ${layout.width} ${layout.height}`} role="group" aria-labelledby="graph-title" onKeyDown={move}>
            <defs>
              <marker id="graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
                <path class="graph-head" d="M0,0 L8,4 L0,8 z" />
              </marker>
            </defs>
            {layout.edges.map(({ edge, path, labelX, labelY }) => (
              <g key={`${edge.from} ${edge.to} ${edge.label}`} class="graph-edge" data-near={edge.from === current || edge.to === current} aria-hidden="true">
                <path d={path} marker-end="url(#graph-arrow)" />
                <text x={labelX} y={labelY}>
                  {edge.label}
                </text>
              </g>
            ))}
            {layout.nodes.map((placed) => (
              <Box key={placed.node.id} placed={placed} own={placed === own} current={placed.node.id === current} around={around(graph, placed)} focus={() => setChosen(placed.node.id)} />
            ))}
          </svg>
        </div>
      )}
      <p class="quiet small">Arrow keys walk from object to object. Enter opens a machine.</p>
    </section>
  );
}

interface BoxProps {
  placed: PlacedNode;
  own: boolean;
  current: boolean;
  around: string;
  focus: () => void;
}

function Box({ placed: { node, x, y }, own, current, around: edges, focus }: BoxProps) {
  const isLink = node.machine !== "" && !own;
  const open = (): void => {
    if (isLink) go(machineLink(node.machine));
  };
  const label = `${node.kind} ${node.name}, ${node.status || node.state}${edges && `. ${edges}`}`;
  return (
    <g
      class="graph-node"
      data-id={node.id}
      data-own={own}
      data-link={isLink}
      transform={`translate(${x} ${y})`}
      tabIndex={current ? 0 : -1}
      role={isLink ? "link" : "img"}
      aria-label={label}
      onFocus={focus}
      onClick={open}
      onKeyDown={(event) => event.key === "Enter" && open()}
    >
      <title>{`${node.namespace ? `${node.namespace}/` : ""}${node.name}: ${node.status || node.state}`}</title>
      <rect width={BOX.width} height={BOX.height} rx="7" />
      <text class="graph-kind" x="12" y="17">
        {shortened(node.kind, LONGEST_KIND)}
      </text>
      <text class="graph-name" x="12" y="34">
        {shortened(node.name, LONGEST_NAME)}
      </text>
      <text class="graph-status" x="30" y="50">
        {shortened(node.status || node.state, LONGEST_STATUS)}
      </text>
      <foreignObject x="10" y="38" width="16" height="16">
        <StateMark state={node.state} />
      </foreignObject>
    </g>
  );
}

/** The arrows of an object in words. */
function around(graph: Graph, { node }: PlacedNode): string {
  const names = new Map(graph.nodes.map((each) => [each.id, `${each.kind} ${each.name}`]));
  const out = graph.edges.filter((edge) => edge.from === node.id).map((edge) => `${edge.label || "leads to"} ${names.get(edge.to) ?? ""}`);
  return out.join(", ");
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
