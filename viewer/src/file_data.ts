// SPDX-License-Identifier: Apache-2.0
// What the self-contained file carries: named parts, each as the text of an element of the page, packed.
// A part is unpacked when somebody first asks for it, and its text is forgotten then. Whoever mailed the
// file may have written anything into it, so what cannot be read is an error in words.

import { type Columns, decodeColumns } from "./columns";

const mostBytes = 2 ** 30; // Of a part, unpacked.

export class FileData {
  private parts = new Map<string, Promise<ArrayBuffer>>();
  private decoded = new Map<string, Promise<Columns>>();

  // `texts`: how to get a part's text, once.
  constructor(private texts: Map<string, () => string>) {}

  // Null if this page is served and carries nothing.
  static ofPage(page: ParentNode): FileData | null {
    const texts = new Map<string, () => string>();
    for (const element of page.querySelectorAll<HTMLElement>("[data-mscope]"))
      texts.set(element.dataset.mscope!, () => {
        const text = element.textContent ?? "";
        element.remove();
        return text;
      });
    return texts.size > 0 ? new FileData(texts) : null;
  }

  has(name: string): boolean {
    return this.texts.has(name);
  }

  names(): string[] {
    return [...this.texts.keys()];
  }

  bytes(name: string): Promise<ArrayBuffer> {
    let part = this.parts.get(name);
    if (!part) {
      part = unpacked(this.texts.get(name) ?? (() => ""), name);
      this.parts.set(name, part);
    }
    return part;
  }

  columns(name: string): Promise<Columns> {
    let columns = this.decoded.get(name);
    if (!columns) {
      columns = this.bytes(name).then((buffer) => decodeColumns(buffer, whose(name)));
      this.decoded.set(name, columns);
    }
    return columns;
  }

  async json(name: string): Promise<any> {
    const text = new TextDecoder().decode(await this.bytes(name));
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw damaged(name, "it is not JSON");
    }
    if (typeof value !== "object" || value === null) throw damaged(name, "it is empty");
    return value;
  }
}

function whose(name: string): string {
  return `This file is damaged: its part "${name}"`;
}

export function damaged(name: string, why: string): Error {
  return new Error(`${whose(name)} cannot be read: ${why}.`);
}

async function unpacked(text: () => string, name: string): Promise<ArrayBuffer> {
  let packed: Uint8Array<ArrayBuffer>;
  try {
    packed = fromBase64(text().trim());
  } catch {
    throw damaged(name, "it is not base64");
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      length += value.length;
      if (length > mostBytes) {
        void reader.cancel();
        break;
      }
    }
  } catch {
    throw damaged(name, "it does not unpack");
  }
  if (length > mostBytes) throw damaged(name, "it is too large");
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all.buffer;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
