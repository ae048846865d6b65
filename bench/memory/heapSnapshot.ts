/**
 * A heap snapshot of V8, read from its file piece by piece: that of a large cluster is longer than a string may be.
 *
 * Objects are grouped by what they are: a literal by its properties, so that each shape of ours has its own line. What V8
 * keeps apart for an object (elements, tables of maps, large numbers) is counted with it.
 */
import { createReadStream } from 'node:fs';

export interface HeapGroup {
  /** `Map`, `{ip, nodeName, …}`, `(string)` */
  readonly name: string;
  readonly count: number;
  readonly bytes: number;
}

interface SnapshotMeta {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[], ...unknown[]];
      readonly edge_fields: readonly string[];
      readonly edge_types: readonly [readonly string[], ...unknown[]];
    };
    readonly node_count: number;
    readonly edge_count: number;
  };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const CLOSE = 0x5d;
const MOST_PROPERTIES = 24;

/** The groups that take most, and one line for the rest. */
export async function summarizeHeap(path: string, most: number): Promise<readonly HeapGroup[]> {
  const groups = new Map<string, { count: number; bytes: number }>();
  for (const [name, bytes] of new HeapGraph(await readSnapshot(path)).objects()) {
    const group = groups.get(name) ?? { count: 0, bytes: 0 };
    group.count++;
    group.bytes += bytes;
    groups.set(name, group);
  }
  const sorted = Array.from(groups, ([name, group]) => ({ name, ...group })).sort(
    (a, b) => b.bytes - a.bytes,
  );
  const rest = sorted.slice(most).reduce(
    (sum, { count, bytes }) => ({
      name: 'the rest',
      count: sum.count + count,
      bytes: sum.bytes + bytes,
    }),
    { name: 'the rest', count: 0, bytes: 0 },
  );
  return [...sorted.slice(0, most), rest];
}

interface Snapshot {
  readonly meta: SnapshotMeta['snapshot'];
  readonly nodes: Uint32Array;
  readonly edges: Uint32Array;
  readonly strings: readonly string[];
}

type NodeField = 'type' | 'name' | 'self_size' | 'edge_count';

/** Nodes with their edges. Names of fields are those of V8. */
class HeapGraph {
  readonly #snapshot: Snapshot;
  readonly #nodeSize: number;
  readonly #edgeSize: number;
  readonly #field: Readonly<Record<NodeField, number>>;
  readonly #nodeTypes: readonly string[];
  readonly #edgeTypes: readonly string[];

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const { node_fields: fields, edge_fields: edgeFields, node_types, edge_types } = snapshot.meta.meta;
    this.#nodeSize = fields.length;
    this.#edgeSize = edgeFields.length;
    const at = (name: string): number => fields.indexOf(name);
    this.#field = {
      type: at('type'),
      name: at('name'),
      self_size: at('self_size'),
      edge_count: at('edge_count'),
    };
    this.#nodeTypes = node_types[0];
    this.#edgeTypes = edge_types[0];
  }

  /** Every object that takes memory, with what belongs to nobody but it. */
  *objects(): Generator<readonly [name: string, bytes: number]> {
    const { nodes } = this.#snapshot;
    const count = nodes.length / this.#nodeSize;
    const owned = new Uint8Array(count);
    const extra = new Float64Array(count);
    this.#eachEdge((from, type, _, to) => {
      if (type !== 'internal' && type !== 'hidden' && type !== 'property') return;
      if (owned[to] === 1 || !this.#isPart(to) || this.#typeOf(from) !== 'object') return;
      owned[to] = 1;
      extra[from] = (extra[from] ?? 0) + this.#value(to, 'self_size');
    });
    const shapes = this.#shapes();
    for (let node = 0; node < count; node++) {
      const bytes = this.#value(node, 'self_size') + (extra[node] ?? 0);
      if (owned[node] === 0 && bytes > 0) yield [shapes.get(node) ?? this.#nameOf(node), bytes];
    }
  }

  /** What has no name of its own: backing stores and boxed numbers. */
  #isPart(node: number): boolean {
    const type = this.#typeOf(node);
    return type === 'array' || type === 'number';
  }

  /** Of literals: their properties in order. */
  #shapes(): ReadonlyMap<number, string> {
    const names = new Map<number, string[]>();
    this.#eachEdge((from, type, name) => {
      if (type !== 'property' || !this.#isLiteral(from)) return;
      const text = this.#snapshot.strings[name] ?? '';
      if (text === '__proto__') return;
      const known = names.get(from);
      if (known === undefined) names.set(from, [text]);
      else if (known.length < MOST_PROPERTIES) known.push(text);
    });
    return new Map(Array.from(names, ([node, texts]) => [node, `{${texts.join(', ')}}`]));
  }

  #isLiteral(node: number): boolean {
    return this.#typeOf(node) === 'object' && this.#text(node).startsWith('Object');
  }

  #nameOf(node: number): string {
    const type = this.#typeOf(node);
    if (type === 'object' || type === 'native') return this.#text(node);
    return `(${type})`;
  }

  #text(node: number): string {
    return this.#snapshot.strings[this.#value(node, 'name')] ?? '';
  }

  #typeOf(node: number): string {
    return this.#nodeTypes[this.#value(node, 'type')] ?? '';
  }

  #value(node: number, field: NodeField): number {
    return this.#snapshot.nodes[node * this.#nodeSize + this.#field[field]] ?? 0;
  }

  #eachEdge(take: (from: number, type: string, name: number, to: number) => void): void {
    const { nodes, edges } = this.#snapshot;
    let at = 0;
    for (let node = 0; node < nodes.length / this.#nodeSize; node++)
      for (let left = this.#value(node, 'edge_count'); left > 0; left--, at += this.#edgeSize) {
        const type = this.#edgeTypes[edges[at] ?? 0] ?? '';
        take(node, type, edges[at + 1] ?? 0, (edges[at + 2] ?? 0) / this.#nodeSize);
      }
  }
}

async function readSnapshot(path: string): Promise<Snapshot> {
  const source = new Bytes(createReadStream(path, { highWaterMark: 1 << 20 }));
  const head = await source.until('"nodes":[');
  const { snapshot: meta } = JSON.parse(`${head.replace(/,\s*$/, '')}}`) as SnapshotMeta;
  const nodes = await source.numbers(meta.node_count * meta.meta.node_fields.length);
  await source.until('"edges":[');
  const edges = await source.numbers(meta.edge_count * meta.meta.edge_fields.length);
  await source.until('"strings":[');
  return { meta, nodes, edges, strings: await source.strings() };
}

/** The file's bytes, taken in order. */
class Bytes {
  readonly #chunks: AsyncIterator<Buffer>;
  #chunk: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** What stands before the mark. Afterwards the next byte is the first behind it. */
  async until(mark: string): Promise<string> {
    let text = '';
    for (;;) {
      const from = Math.max(0, text.length - mark.length);
      text += this.#chunk.toString('latin1', this.#at);
      const found = text.indexOf(mark, from);
      if (found >= 0) {
        this.#at = this.#chunk.length - (text.length - found - mark.length);
        return text.slice(0, found);
      }
      if (!(await this.#next())) throw new Error(`the heap snapshot has no ${mark}`);
    }
  }

  /** Up to the closing bracket. */
  async numbers(count: number): Promise<Uint32Array> {
    const numbers = new Uint32Array(count);
    let index = 0;
    let value = 0;
    do {
      for (; this.#at < this.#chunk.length; this.#at++) {
        const byte = this.#chunk[this.#at] ?? 0;
        if (byte >= ZERO && byte <= NINE) value = value * 10 + (byte - ZERO);
        else if (byte === COMMA || byte === CLOSE) {
          numbers[index++] = value;
          value = 0;
          if (byte === CLOSE) return numbers;
        }
      }
    } while (await this.#next());
    throw new Error('the heap snapshot ends too early');
  }

  async strings(): Promise<readonly string[]> {
    const strings: string[] = [];
    let pieces: Buffer[] = [];
    let isInside = false;
    let isEscaped = false;
    do {
      let start = this.#at;
      for (; this.#at < this.#chunk.length; this.#at++) {
        const byte = this.#chunk[this.#at];
        if (isEscaped) isEscaped = false;
        else if (isInside && byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE && isInside) {
          pieces.push(this.#chunk.subarray(start, this.#at));
          strings.push(JSON.parse(`"${Buffer.concat(pieces).toString()}"`) as string);
          pieces = [];
          isInside = false;
        } else if (byte === QUOTE) {
          isInside = true;
          start = this.#at + 1;
        } else if (byte === CLOSE && !isInside) return strings;
      }
      if (isInside) pieces.push(this.#chunk.subarray(start));
    } while (await this.#next());
    throw new Error('the heap snapshot ends too early');
  }

  async #next(): Promise<boolean> {
    const { value, done } = await this.#chunks.next();
    if (done === true) return false;
    this.#chunk = value;
    this.#at = 0;
    return true;
  }
}
