// As much of RFC 6143 as a graphical console needs: a picture, and a square for each key that goes down.
// With PADDOCK_DEV_VNC=HOST:PORT the screen is that of a real VNC server.
import { connect } from "node:net";

const WIDTH = 800;
const HEIGHT = 600;
const EXTENDED_KEYS = -258;
/** Bytes of each message of a client; null depends on its content. */
const LENGTHS = { 0: () => 20, 2: (bytes) => (bytes.length < 4 ? null : 4 + 4 * bytes.readUInt16BE(2)), 3: () => 10, 4: () => 8, 5: () => 6, 6: (bytes) => (bytes.length < 8 ? null : 8 + Math.abs(bytes.readInt32BE(4))), 255: () => 12 };

export function screen(connection) {
  const target = process.env.PADDOCK_DEV_VNC;
  if (target) return proxy(connection, target);
  const keys = [];
  let phase = "version";
  let kept = Buffer.alloc(0);
  let waiting = false;
  connection.send("RFB 003.008\n");
  const take = (length) => {
    if (kept.length < length) return null;
    const part = kept.subarray(0, length);
    kept = kept.subarray(length);
    return part;
  };
  const update = (first) => connection.send(picture(keys, first));
  const steps = {
    version: () => take(12) && (connection.send([1, 1]), "security"),
    security: () => take(1) && (connection.send([0, 0, 0, 0]), "init"),
    init: () => take(1) && (connection.send(greeting("a guest")), "open"),
    open: () => {
      const length = kept.length ? LENGTHS[kept[0]]?.(kept) : null;
      const message = length && take(length);
      if (!message) return null;
      if (message[0] === 3 && message[1] === 0) update(true);
      else if (message[0] === 3) waiting = true;
      if (message[0] === 4 || message[0] === 255) key(message);
      return "open";
    },
  };
  const key = (message) => {
    const extended = message[0] === 255;
    const down = extended ? message.readUInt16BE(2) : message[1];
    const keysym = message.readUInt32BE(4);
    if (process.env.PADDOCK_DEV_KEYS) console.log(`key ${down ? "down" : "up"} 0x${keysym.toString(16)} ${extended ? `scan 0x${message.readUInt32BE(8).toString(16)}` : ""}`);
    if (down) keys.push(keysym);
    if (waiting && down) {
      waiting = false;
      update(false);
    }
  };
  connection.messages((bytes) => {
    kept = Buffer.concat([kept, bytes]);
    for (let next = steps[phase](); next; next = steps[phase]()) phase = next;
  });
}

function proxy(connection, target) {
  const [host, port] = target.split(":");
  const socket = connect(Number(port), host);
  socket.on("data", (bytes) => connection.send(bytes));
  socket.on("error", () => {});
  connection.messages((bytes) => socket.write(bytes));
}

function greeting(name) {
  const bytes = Buffer.alloc(24 + name.length);
  bytes.writeUInt16BE(WIDTH, 0);
  bytes.writeUInt16BE(HEIGHT, 2);
  bytes.set([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16], 4);
  bytes.writeUInt32BE(name.length, 20);
  bytes.write(name, 24);
  return bytes;
}

function picture(keys, first) {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(first ? 2 : 1, 2);
  const pixels = Buffer.alloc(WIDTH * HEIGHT * 4);
  for (let y = 0; y < HEIGHT; y += 1) {
    for (let x = 0; x < WIDTH; x += 1) {
      const at = (y * WIDTH + x) * 4;
      const square = keys[Math.floor(y / 25) * 32 + Math.floor(x / 25)];
      const inside = square !== undefined && x % 25 > 2 && y % 25 > 2;
      pixels.set(inside ? [60 + ((square * 37) % 190), 60 + ((square * 71) % 190), 200, 0] : [16 + y / 20, 40 + x / 20, 60 + y / 12, 0], at);
    }
  }
  const parts = [head, rectangle(WIDTH, HEIGHT, 0), pixels];
  if (first) parts.push(rectangle(0, 0, EXTENDED_KEYS));
  return Buffer.concat(parts);
}

function rectangle(width, height, encoding) {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(width, 4);
  bytes.writeUInt16BE(height, 6);
  bytes.writeInt32BE(encoding, 8);
  return bytes;
}
