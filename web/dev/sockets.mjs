// As much of RFC 6455 as a serial console needs: it greets, and answers what one types.
import { createHash } from "node:crypto";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export function accept(request, socket) {
  const key = createHash("sha1").update(request.headers["sec-websocket-key"] + GUID).digest("base64");
  const offered = request.headers["sec-websocket-protocol"];
  const chosen = offered ? `Sec-WebSocket-Protocol: ${offered.split(",")[0].trim()}\r\n` : "";
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n${chosen}\r\n`);
  return { send: (bytes) => socket.write(frame(2, Buffer.from(bytes))), messages: (handler) => receive(socket, handler) };
}

function frame(opcode, payload) {
  const { length } = payload;
  const head = length < 126 ? Buffer.from([0x80 | opcode, length]) : length < 65536 ? Buffer.from([0x80 | opcode, 126, length >> 8, length & 255]) : Buffer.alloc(10);
  if (length >= 65536) {
    head[0] = 0x80 | opcode;
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}

function receive(socket, handler) {
  let kept = Buffer.alloc(0);
  socket.on("data", (bytes) => {
    kept = Buffer.concat([kept, bytes]);
    for (;;) {
      if (kept.length < 2) return;
      const opcode = kept[0] & 15;
      let length = kept[1] & 127;
      let at = 2;
      if (length === 126) [length, at] = [kept.readUInt16BE(2), 4];
      if (length === 127) [length, at] = [Number(kept.readBigUInt64BE(2)), 10];
      if (kept.length < at + 4 + length) return;
      const mask = kept.subarray(at, at + 4);
      const payload = Buffer.from(kept.subarray(at + 4, at + 4 + length)).map((byte, index) => byte ^ mask[index % 4]);
      kept = kept.subarray(at + 4 + length);
      if (opcode === 8) return void socket.end(frame(8, Buffer.alloc(0)));
      if (opcode === 9) socket.write(frame(10, payload));
      else if (opcode === 1 || opcode === 2) handler(payload);
    }
  });
  socket.on("error", () => socket.destroy());
}

export function serial(connection) {
  connection.send("Debian GNU/Linux 13 web ttyS0\r\n\r\nweb login: ");
  let line = "";
  connection.messages((bytes) => {
    for (const letter of bytes.toString()) {
      if (letter === "\r") {
        connection.send(`\r\n\x1b[32mada@web\x1b[0m:~$ you typed: ${line}\r\n\x1b[32mada@web\x1b[0m:~$ `);
        line = "";
      } else {
        line += letter;
        connection.send(letter);
      }
    }
  });
}
