import assert from "node:assert/strict";
import { test } from "node:test";
import { type Listener, type Source, Stream, changed, pauseBefore } from "../src/api/stream";

class FakeSource implements Source {
  readyState = 1;
  closed = false;
  readonly listeners = new Map<string, (event: { data?: string }) => void>();

  constructor(readonly url: string) {}

  addEventListener(type: string, listener: (event: { data?: string }) => void): void {
    this.listeners.set(type, listener);
  }

  close(): void {
    this.closed = true;
  }

  say(type: string, data: unknown = {}): void {
    this.listeners.get(type)?.({ data: JSON.stringify(data) });
  }
}

function setUp() {
  const sources: FakeSource[] = [];
  const heard: string[] = [];
  const pauses: { milliseconds: number; action: () => void }[] = [];
  const listener: Listener = {
    opened: () => heard.push("opened"),
    reset: ({ topic, rows }) => heard.push(`reset ${topic} ${rows.length}`),
    change: ({ topic, set, gone }) => heard.push(`change ${topic} ${set.length} ${gone.length}`),
    lost: ({ why }) => heard.push(`lost ${why}`),
    closed: () => heard.push("closed"),
  };
  const open = (url: string): FakeSource => {
    const source = new FakeSource(url);
    sources.push(source);
    return source;
  };
  const clock = {
    after: (milliseconds: number, action: () => void) => {
      const pause = { milliseconds, action };
      pauses.push(pause);
      return () => void pauses.splice(pauses.indexOf(pause), pauses.includes(pause) ? 1 : 0);
    },
  };
  return { stream: new Stream(listener, open, clock), sources, heard, pauses };
}

test("a stream has all topics in one connection, and a new one for other topics", () => {
  const { stream, sources } = setUp();
  stream.follow(["tasks", "machines"]);
  stream.follow(["machines", "tasks"]);
  assert.deepEqual(sources.map((each) => each.url), ["console/v1/stream?topics=machines%2Ctasks"]);
  stream.follow(["machines"]);
  assert.equal(sources.length, 2);
  assert.ok(sources[0]?.closed);
});

test("what the server reports reaches the listener; what an old connection still says does not", () => {
  const { stream, sources, heard } = setUp();
  stream.follow(["machines"]);
  sources[0]?.say("open");
  sources[0]?.say("reset", { topic: "machines", rows: [{ id: "a" }] });
  sources[0]?.say("change", { topic: "machines", set: [{ id: "b" }], gone: ["a"] });
  sources[0]?.say("lost", { why: "refused", since: "" });
  stream.follow(["tasks"]);
  sources[0]?.say("reset", { topic: "machines", rows: [] });
  assert.deepEqual(heard, ["opened", "reset machines 1", "change machines 1 1", "lost refused"]);
});

test("an answer that is no stream is tried again after pauses that grow", () => {
  const { stream, sources, heard, pauses } = setUp();
  stream.follow(["machines"]);
  for (const expected of [500, 1000, 2000]) {
    const source = sources.at(-1);
    assert.ok(source);
    source.readyState = 2;
    source.say("error");
    assert.equal(pauses.at(-1)?.milliseconds, expected);
    pauses.pop()?.action();
  }
  assert.equal(sources.length, 4);
  assert.deepEqual(heard, ["closed", "closed", "closed"]);
  sources.at(-1)?.say("open");
  const last = sources.at(-1);
  assert.ok(last);
  last.readyState = 2;
  last.say("error");
  assert.equal(pauses.at(-1)?.milliseconds, 500, "a connection that was open begins anew");
  assert.equal(pauseBefore(20), 15_000);
});

test("the browser itself tries again after a break", () => {
  const { stream, sources, pauses, heard } = setUp();
  stream.follow(["machines"]);
  const [source] = sources;
  assert.ok(source);
  source.readyState = 0;
  source.say("error");
  assert.deepEqual([sources.length, pauses.length, heard], [1, 0, ["closed"]]);
});

test("a stream that was closed stays closed", () => {
  const { stream, sources, pauses } = setUp();
  stream.follow(["machines"]);
  const [source] = sources;
  assert.ok(source);
  source.readyState = 2;
  source.say("error");
  stream.close();
  assert.equal(pauses.length, 0);
});

test("a stream that was closed begins again with the same topics", () => {
  const { stream, sources } = setUp();
  stream.follow(["machines"]);
  stream.close();
  stream.follow(["machines"]);
  assert.equal(sources.length, 2);
});

test("a change sets and removes rows, and leaves the map as it was", () => {
  const before = new Map([["a", { id: "a", n: 1 }]]);
  const after = changed(before, { set: [{ id: "b", n: 2 }, { id: "a", n: 3 }], gone: ["c"] });
  assert.deepEqual([...after.values()], [{ id: "a", n: 3 }, { id: "b", n: 2 }]);
  assert.deepEqual([...changed(after, { set: [], gone: ["a"] }).keys()], ["b"]);
  assert.deepEqual([...before.values()], [{ id: "a", n: 1 }]);
});
