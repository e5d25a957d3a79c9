import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import type { Done } from "../generated/answers";
import { Command } from "../parts/copytext";
import { Field } from "../parts/field";
import { ProblemNote } from "../parts/problemnote";
import { load } from "../state/session";
import { Brand } from "./brand";

/** The page of somebody who is not signed in: a link opens the console, or a token does. */
export function SignIn() {
  const method = useSignal("link");
  useEffect(() => {
    get<{ method: string }>("login").then(
      (answer) => (method.value = answer.method),
      // Without an answer the words about links are right more often than not.
      () => {},
    );
  }, []);
  return (
    <main class="alone" id="main">
      <p class="brand">
        <Brand />
        Paddock
      </p>
      <h1>Sign in</h1>
      {method.value === "token" ? <TokenForm /> : <LinkWords />}
    </main>
  );
}

function LinkWords() {
  return (
    <>
      <p>Nobody is signed in to this console. A link opens it, once and within ten minutes. This command prints one:</p>
      <Command text="paddock ui" />
      <button type="button" class="button" onClick={() => void load()}>
        Try again
      </button>
    </>
  );
}

function TokenForm() {
  const token = useSignal("");
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const submit = async (): Promise<void> => {
    busy.value = true;
    problem.value = null;
    try {
      await post<Done>("login", { token: token.value.trim() });
      await load();
    } catch (thrown) {
      problem.value = problemOf(thrown);
    } finally {
      busy.value = false;
    }
  };
  return (
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        if (token.value.trim() && !busy.value) void submit();
      }}
    >
      <p>Sign in with a token of a ServiceAccount or an OIDC ID token. The console acts with its rights, and keeps it in memory only. This command prints one:</p>
      <Command text="kubectl create token NAME" />
      <Field
        label="Token"
        control={(props) => (
          <input {...props} class="input mono" type="password" autocomplete="off" value={token.value} onInput={(event) => (token.value = event.currentTarget.value)} />
        )}
      />
      <button type="submit" class="button primary" aria-disabled={token.value.trim() && !busy.value ? undefined : true}>
        {busy.value ? "Signing in…" : "Sign in"}
      </button>
      {problem.value && <ProblemNote problem={problem.value} />}
    </form>
  );
}
