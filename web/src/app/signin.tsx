import { load } from "../state/session";

export function SignIn() {
  return (
    <main class="alone">
      <h1>Sign in</h1>
      <p>Nobody is signed in to this console. Open the link that Paddock printed when it started; each link is good for one use.</p>
      <button type="button" class="button" onClick={() => void load()}>
        Try again
      </button>
    </main>
  );
}
