import { Dialogs } from "../parts/dialog";
import { ProblemNote } from "../parts/problemnote";
import { Spinner } from "../parts/spinner";
import { Toasts } from "../parts/toasts";
import { connection } from "../state/live";
import { load, session } from "../state/session";
import { Pages } from "./pages";
import { route } from "./routes";
import { Shell } from "./shell";
import { SignIn } from "./signin";

export function App() {
  return (
    <>
      <Content />
      <Dialogs />
      <Toasts />
    </>
  );
}

function Content() {
  const { value } = session;
  // A stream is open to somebody who is signed in; who that is, and what they may do, comes later than the rows.
  if (value.state === "unknown" && connection.value.state !== "open") return <Spinner label="Connecting" />;
  if (value.state === "signed-out") return <SignIn />;
  if (value.state === "failed") {
    return (
      <main class="alone">
        <ProblemNote problem={value.problem} again={() => void load()} />
      </main>
    );
  }
  // A window of its own for a console or a screen has nothing around the page.
  if (route.value.query["window"] === "1") return <Pages />;
  return (
    <Shell>
      <Pages />
    </Shell>
  );
}
