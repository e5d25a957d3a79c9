import { useTopic } from "../state/live";

/** One machine. */
export function MachinePage({ place }: { place: string }) {
  const row = useTopic("machines").value.get(place);
  return (
    <main class="page">
      <h1>{row?.name ?? place}</h1>
    </main>
  );
}
