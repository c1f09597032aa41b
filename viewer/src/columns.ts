// SPDX-License-Identifier: Apache-2.0
// Large answers come as typed arrays behind a JSON head ("MSC1", docs/viewer_api.md). They are not copied:
// the arrays returned look into the buffer that came from the server, or out of the file.

export type Column = Float64Array | Uint32Array | Int32Array | Uint8Array;

export interface Columns {
  head: Record<string, any>;
  column(name: string): Column | null;
  numbers(name: string): Float64Array; // Empty if it is not there.
  indices(name: string): Uint32Array;
}

const kinds = { f64: Float64Array, u32: Uint32Array, i32: Int32Array, u8: Uint8Array };

export function decodeColumns(buffer: ArrayBuffer, whose = "The server's answer"): Columns {
  const bytes = new Uint8Array(buffer);
  const bad = (why: string) => new Error(`${whose} cannot be read: ${why}.`);
  if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== "MSC1") throw bad("it is not in columns");
  const length = new DataView(buffer).getUint32(4, true);
  if (8 + length > bytes.length) throw bad("its head is cut off");
  let head: Record<string, any>;
  try {
    head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  } catch {
    throw bad("its head is not JSON");
  }
  if (typeof head !== "object" || head === null) throw bad("its head is empty");

  const columns = new Map<string, Column>();
  let at = padded(8 + length);
  for (const { name, type, length: n } of Array.isArray(head.columns) ? head.columns : []) {
    const kind = Object.hasOwn(kinds, type) ? kinds[type as keyof typeof kinds] : null;
    if (!kind || !Number.isInteger(n) || n < 0) throw bad(`column ${name} is of an unknown kind`);
    const size = n * kind.BYTES_PER_ELEMENT;
    if (at + size > bytes.length) throw bad(`column ${name} is cut off`);
    columns.set(name, new kind(buffer, at, n));
    at = padded(at + size);
  }
  return {
    head,
    column: (name) => columns.get(name) ?? null,
    numbers: (name) => {
      const found = columns.get(name);
      return found instanceof Float64Array ? found : Float64Array.from(found ?? []);
    },
    indices: (name) => {
      const found = columns.get(name);
      return found instanceof Uint32Array ? found : Uint32Array.from(found ?? []);
    },
  };
}

// The other way round, for tests.
export function encodeColumns(head: Record<string, unknown>, columns: Record<string, Column>): ArrayBuffer {
  const kind = (c: Column) => Object.entries(kinds).find(([, k]) => c instanceof k)![0];
  const listed = Object.entries(columns).map(([name, c]) => ({ name, type: kind(c), length: c.length }));
  const text = new TextEncoder().encode(JSON.stringify({ ...head, columns: listed }));
  const length = padded(text.length);
  const all = Object.values(columns).reduce((sum, c) => sum + padded(c.byteLength), 8 + length);
  const bytes = new Uint8Array(all).fill(0x20, 8, 8 + length);
  bytes.set([0x4d, 0x53, 0x43, 0x31]);
  new DataView(bytes.buffer).setUint32(4, length, true);
  bytes.set(text, 8);
  let at = 8 + length;
  for (const c of Object.values(columns)) {
    bytes.set(new Uint8Array(c.buffer, c.byteOffset, c.byteLength), at);
    at += padded(c.byteLength);
  }
  return bytes.buffer;
}

function padded(n: number): number {
  return Math.ceil(n / 8) * 8;
}
