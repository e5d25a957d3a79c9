import assert from "node:assert/strict";
import { test } from "node:test";
import { COMBINATIONS, strokeOf, typingOf } from "../../src/console/keys";
import { FIRST_LINK, type LinkEvent, type LinkState, nextLink, waitAfter } from "../../src/console/link";
import { pictureName } from "../../src/console/window";

test("characters become keys of a US keyboard, with shift where it needs it", () => {
  assert.deepEqual(strokeOf("a"), { keysym: 0x61, code: "KeyA", shift: false });
  assert.deepEqual(strokeOf("A"), { keysym: 0x41, code: "KeyA", shift: true });
  assert.deepEqual(strokeOf("|"), { keysym: 0x7c, code: "Backslash", shift: true });
  assert.deepEqual(strokeOf("@"), { keysym: 0x40, code: "Digit2", shift: true });
  assert.deepEqual(strokeOf("\n"), { keysym: 0xff0d, code: "Enter", shift: false });
  assert.equal(strokeOf("é"), null);
});

test("every printable ASCII character has a key, and no two have the same", () => {
  const keys = new Set<string>();
  for (let code = 0x20; code < 0x7f; code += 1) {
    const stroke = strokeOf(String.fromCharCode(code));
    assert.ok(stroke, String.fromCharCode(code));
    assert.equal(stroke.keysym, code);
    keys.add(`${stroke.code} ${stroke.shift}`);
  }
  assert.equal(keys.size, 0x7f - 0x20);
});

test("line ends of every system are one Enter, and characters without a key are named once", () => {
  const { strokes, missing } = typingOf("a\r\nb\rc\n€é€");
  assert.deepEqual(strokes.map((each) => each.code), ["KeyA", "Enter", "KeyB", "Enter", "KeyC", "Enter"]);
  assert.deepEqual(missing, ["€", "é"]);
});

test("combinations: Ctrl+Alt+Del comes first, and function keys have their keysyms", () => {
  assert.deepEqual(COMBINATIONS[0]?.keys.map(([keysym]) => keysym), [0xffe3, 0xffe9, 0xffff]);
  assert.deepEqual(COMBINATIONS.find((each) => each.label === "Ctrl+Alt+F1")?.keys.at(-1), [0xffbe, "F1"]);
});

const after = (...events: LinkEvent[]): LinkState => events.reduce(nextLink, FIRST_LINK);
const lost = (now: number, served = false, lasted = 60_000): LinkEvent => ({ type: "lost", reason: "", served, lasted, now });

test("a connection that ends connects again, and waits longer each time", () => {
  const once = after({ type: "open" }, lost(1000));
  assert.equal(once.phase, "waiting");
  assert.equal(once.retryAt, 1500);
  assert.match(once.text, /^The connection ended\./);
  const often = after(lost(0), lost(0), lost(0), lost(0), lost(0), lost(0), lost(10_000));
  assert.equal(often.retryAt, 15_000);
  assert.match(often.text, /^There is no connection\./);
  assert.ok(waitAfter(1) < waitAfter(3));
});

test("a connection that is open again forgets its failures", () => {
  const failing = [lost(0), lost(0), lost(0)];
  const state = after(...failing, { type: "connect" }, { type: "open" });
  assert.equal(state.text, "Connected");
  assert.equal(nextLink(state, lost(0, true)).retryAt, waitAfter(1));
  assert.equal(nextLink(nextLink(nextLink(state, lost(0, true)), { type: "connect" }), { type: "open" }).text, "Connected again");
});

test("the reason of the server is what the page says", () => {
  const stopped = after({ type: "lost", reason: "web does not run", served: false, lasted: 0, now: 0 });
  assert.equal(stopped.text, "There is no connection: web does not run. The page connects again when the machine runs.");
  const refused = after({ type: "refused", reason: "you may not open the console" });
  assert.deepEqual([refused.phase, refused.text], ["closed", "The server refused: you may not open the console"]);
});

test("a machine without the device says so, and another try makes sense when the machine runs anew", () => {
  const absent = after({ type: "absent", reason: "No graphics devices are present." });
  assert.deepEqual([absent.phase, absent.resumes, absent.text], ["closed", true, "There is nothing to connect to: No graphics devices are present."]);
});

test("two windows do not take the console from each other for ever", () => {
  const stolen = (lasted: number): LinkEvent[] => [{ type: "open" }, lost(0, true, lasted), { type: "connect" }];
  assert.equal(after(...stolen(60_000), ...stolen(800)).phase, "connecting");
  const given = after(...stolen(60_000), ...stolen(800), { type: "open" }, lost(0, true, 800));
  assert.deepEqual([given.phase, given.resumes, given.text], ["closed", false, "Another window or person uses it now"]);
  assert.equal(after(...stolen(800), ...stolen(60_000), ...stolen(800)).phase, "connecting");
});

test("a console that went to a window of its own stays there", () => {
  const moved = after({ type: "open" }, { type: "moved" });
  assert.deepEqual([moved.phase, moved.resumes, moved.text], ["closed", false, "Open in a window of its own"]);
});

test("a person who disconnects stays disconnected until connecting again", () => {
  const stopped = after({ type: "open" }, { type: "stop" }, lost(5));
  assert.equal(stopped.phase, "closed");
  assert.equal(nextLink(stopped, { type: "connect" }).phase, "connecting");
});

test("a picture is named after the machine and the time", () => {
  assert.equal(pictureName("web", new Date(2026, 0, 2, 3, 4, 5)), "web-20260102-030405.png");
});
