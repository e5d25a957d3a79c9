import { Dialog } from "../parts/dialog";
import { KEYS, singleKeys } from "./keys";

const TABLE = [
  ["↑ ↓", "Move in a table"],
  ["Home, End", "Go to the first or the last row"],
  ["Enter", "Open the row"],
  ["Space", "Select the row"],
  ["Shift F10", "Open the menu of the row"],
] as const;

export function KeyHelp({ close }: { close: () => void }) {
  return (
    <Dialog title="Keys" close={close}>
      <dl class="facts">
        <dt>
          <kbd>Ctrl K</kbd>
        </dt>
        <dd>Search and commands</dd>
        {singleKeys.value &&
          KEYS.map(({ key, text }) => (
            <>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{text}</dd>
            </>
          ))}
        {TABLE.map(([key, text]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}
