/** Places for the objects around a machine: columns by distance along the arrows, rows by the mean of their neighbours. */

import type { Graph, GraphEdge, GraphNode } from "../generated/answers";

export const BOX = { width: 184, height: 58, gapX: 74, gapY: 18, margin: 4 } as const;

export interface PlacedNode {
  node: GraphNode;
  x: number;
  y: number;
  column: number;
}

export interface PlacedEdge {
  edge: GraphEdge;
  path: string;
  labelX: number;
  labelY: number;
}

export interface Layout {
  nodes: PlacedNode[];
  edges: PlacedEdge[];
  width: number;
  height: number;
}

export function layoutOf(graph: Graph): Layout {
  const known = new Map(graph.nodes.map((node) => [node.id, node]));
  const edges = graph.edges.filter((edge) => known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to);
  const columns = orderedColumns(graph.nodes, edges, columnsOf(graph.nodes, edges));
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  const height = 2 * BOX.margin + tallest * BOX.height + (tallest - 1) * BOX.gapY;
  const placed = new Map<string, PlacedNode>();
  columns.forEach((ids, column) => {
    const span = ids.length * BOX.height + (ids.length - 1) * BOX.gapY;
    ids.forEach((id, row) => {
      const node = known.get(id);
      if (!node) return;
      const y = (height - span) / 2 + row * (BOX.height + BOX.gapY);
      placed.set(id, { node, column, x: BOX.margin + column * (BOX.width + BOX.gapX), y });
    });
  });
  const width = 2 * BOX.margin + columns.length * BOX.width + Math.max(0, columns.length - 1) * BOX.gapX;
  return { nodes: [...placed.values()], edges: edges.map((edge) => arrow(edge, placed)), width, height };
}

/** The longest way to each object from one without an arrow to it. An arrow that closes a circle does not count. */
function columnsOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Map<string, number> {
  const before = new Map<string, string[]>();
  for (const edge of edges) before.set(edge.to, [...(before.get(edge.to) ?? []), edge.from]);
  const column = new Map<string, number>();
  const open = new Set<string>();
  const visit = (id: string): number => {
    const known = column.get(id);
    if (known !== undefined) return known;
    open.add(id);
    const sources = (before.get(id) ?? []).filter((source) => !open.has(source));
    const value = sources.reduce((most, source) => Math.max(most, visit(source) + 1), 0);
    open.delete(id);
    column.set(id, value);
    return value;
  };
  for (const node of nodes) visit(node.id);
  return column;
}

function orderedColumns(nodes: readonly GraphNode[], edges: readonly GraphEdge[], column: ReadonlyMap<string, number>): string[][] {
  const columns: string[][] = [];
  for (const node of nodes) {
    const index = column.get(node.id) ?? 0;
    while (columns.length <= index) columns.push([]);
    columns[index]?.push(node.id);
  }
  const neighbours = new Map<string, string[]>();
  for (const edge of edges) {
    neighbours.set(edge.from, [...(neighbours.get(edge.from) ?? []), edge.to]);
    neighbours.set(edge.to, [...(neighbours.get(edge.to) ?? []), edge.from]);
  }
  for (let sweep = 0; sweep < 4; sweep += 1) {
    const row = rowsOf(columns);
    columns.forEach((ids, index) => {
      const mean = (id: string): number => meanOf(id, neighbours, row) ?? row.get(id) ?? 0;
      columns[index] = ids.map((id) => ({ id, mean: mean(id) })).sort((one, other) => one.mean - other.mean).map((each) => each.id);
    });
  }
  return columns;
}

/** Rows as fractions of their column, so that long and short columns compare. */
function rowsOf(columns: readonly string[][]): Map<string, number> {
  const rows = new Map<string, number>();
  for (const ids of columns) ids.forEach((id, index) => rows.set(id, (index + 0.5) / ids.length));
  return rows;
}

function meanOf(id: string, neighbours: ReadonlyMap<string, string[]>, rows: ReadonlyMap<string, number>): number | null {
  const around = neighbours.get(id) ?? [];
  if (around.length === 0) return null;
  return around.reduce((sum, each) => sum + (rows.get(each) ?? 0), 0) / around.length;
}

function arrow(edge: GraphEdge, placed: ReadonlyMap<string, PlacedNode>): PlacedEdge {
  const from = placed.get(edge.from) as PlacedNode;
  const to = placed.get(edge.to) as PlacedNode;
  const forward = to.column > from.column;
  const x1 = from.x + (forward ? BOX.width : 0);
  const x2 = to.x + (forward ? 0 : BOX.width);
  const y1 = from.y + BOX.height / 2;
  const y2 = to.y + BOX.height / 2;
  const bend = BOX.gapX / 2;
  const towards = forward ? 1 : -1;
  const path = `M${x1},${y1} C${x1 + towards * bend},${y1} ${x2 - towards * bend},${y2} ${x2},${y2}`;
  return { edge, path, labelX: x2 - towards * (BOX.gapX - 8), labelY: y2 - 6 };
}

/** The object to which an arrow key leads: the nearest one in that direction, or null. */
export function neighbourOf(layout: Layout, id: string, key: string): string | null {
  const here = layout.nodes.find((each) => each.node.id === id);
  if (!here) return null;
  const cost = (each: PlacedNode): number => {
    const dx = each.x - here.x;
    const dy = each.y - here.y;
    if (key === "ArrowRight") return dx > 0 ? dx + Math.abs(dy) * 2 : Infinity;
    if (key === "ArrowLeft") return dx < 0 ? -dx + Math.abs(dy) * 2 : Infinity;
    if (each.column !== here.column) return Infinity;
    if (key === "ArrowDown") return dy > 0 ? dy : Infinity;
    return key === "ArrowUp" && dy < 0 ? -dy : Infinity;
  };
  let best: PlacedNode | null = null;
  for (const each of layout.nodes) if (cost(each) < (best ? cost(best) : Infinity)) best = each;
  return best?.node.id ?? null;
}
