/**
 * Attribute tables. One table is the encoder, the decoder and the type of a message's attributes:
 *
 *     const LINK = new AttributeTable('a link', { name: required(3, text), kind: optional([18, 1], text) });
 *     type Link = ValueOf<typeof LINK>;               // { name: string; kind?: string | undefined }
 *     LINK.write(writer, { name: 'vip0', kind: 'dummy' });
 *     LINK.read(payload, HEADER_BYTES);
 *
 * A row has the number of its attribute, or a path: the numbers of the nests around it, then its own. Attributes are
 * written in the order of the rows and read in any order; numbers that the table does not have are skipped.
 */
import {
  ATTRIBUTE_HEADER_BYTES,
  LITTLE_ENDIAN,
  type MessageWriter,
  NLA_TYPE_MASK,
  align,
  malformedMessage,
  viewOf,
} from './codec.ts';
import { type AttributeKind, type Fields, UNKNOWN } from './kinds.ts';

type Path = number | readonly number[];
/** A `hidden` row is not part of the value. */
type Presence = 'required' | 'optional' | 'hidden';

interface Row<Value, P extends Presence> {
  readonly presence: P;
  readonly path: Path;
  readonly kind: AttributeKind<Value>;
  /** Read where the attribute is absent. */
  readonly fallback?: Value | undefined;
  /** The value of a hidden row that is written. */
  compute?(this: void, value: unknown): Value;
}

export type Rows = Readonly<Record<string, Row<unknown, Presence>>>;

type ValueOfRows<R extends Rows> = {
  readonly [Name in keyof R as R[Name] extends Row<unknown, 'required'> ? Name : never]: RowValue<R[Name]>;
} & {
  readonly [Name in keyof R as R[Name] extends Row<unknown, 'optional'> ? Name : never]?:
    | RowValue<R[Name]>
    | undefined;
};
type RowValue<R> = R extends Row<infer Value, Presence> ? Value : never;

/** What a table reads. */
export type ValueOf<Table> = Table extends AttributeTable<infer R> ? ValueOfRows<R> : never;

/** A message without it is malformed. */
export function required<Value>(path: Path, kind: AttributeKind<Value>): Row<Value, 'required'> {
  return { presence: 'required', path, kind };
}

export function optional<Value>(path: Path, kind: AttributeKind<Value>): Row<Value, 'optional'> {
  return { presence: 'optional', path, kind };
}

/** Read as `fallback` where it is absent. */
export function withDefault<Value>(
  path: Path,
  kind: AttributeKind<Value>,
  fallback: Value,
): Row<Value, 'required'> {
  return { presence: 'required', path, kind, fallback };
}

/** Always has this value. Another one is unknown. */
export function constant<Value>(
  path: Path,
  kind: AttributeKind<Value>,
  value: Value,
): Row<unknown, 'hidden'> {
  return { ...onlyIf(path, kind, (each) => each === value), compute: () => value };
}

/** Not written. A value that fails the test is unknown. */
export function onlyIf<Value>(
  path: Path,
  kind: AttributeKind<Value>,
  test: (value: unknown, read: Fields) => boolean = () => false,
): Row<unknown, 'hidden'> {
  const check: AttributeKind<unknown> = {
    write: (writer, type, value) => kind.write(writer, type, value as Value),
    read: (view, start, end, read) => (test(kind.read(view, start, end, read), read) ? undefined : UNKNOWN),
  };
  return { presence: 'hidden', path, kind: check };
}

/** Written from the other fields, and not read. */
export function computed<Value>(
  path: Path,
  kind: AttributeKind<Value>,
  compute: (value: Fields) => Value,
): Row<unknown, 'hidden'> {
  return {
    presence: 'hidden',
    path,
    kind: { write: (writer, type, value) => kind.write(writer, type, value as Value), read: () => undefined },
    compute: (value) => compute(value as Fields),
  };
}

/** A row, or a nest of rows. */
interface Node {
  readonly name: string;
  readonly number: number;
  readonly kind: AttributeKind<unknown>;
  readonly compute: ((value: unknown) => unknown) | undefined;
  readonly children: Node[] | undefined;
  /** The children by their numbers, without flags. */
  readonly byNumber: (Node | undefined)[];
}

export class AttributeTable<R extends Rows> {
  /** For errors: `a link`. */
  readonly title: string;
  readonly #nodes: Node[] = [];
  readonly #byNumber: (Node | undefined)[] = [];
  readonly #needed: { readonly name: string; readonly fallback: unknown }[] = [];
  /** All fields, undefined: objects of one shape are faster. */
  readonly #blank: Fields = {};

  constructor(title: string, rows: R) {
    this.title = title;
    for (const [name, row] of Object.entries(rows)) {
      this.#add(name, row);
      if (row.presence !== 'hidden') this.#blank[name] = undefined;
      if (row.presence === 'required') this.#needed.push({ name, fallback: row.fallback });
    }
  }

  /** Writes the fields that are given. */
  write(writer: MessageWriter, value: Partial<ValueOfRows<R>>): void {
    writeNodes(writer, this.#nodes, value);
  }

  /** Reads the attributes behind the header. */
  read(payload: Uint8Array, headerBytes = 0): ValueOfRows<R> {
    if (payload.length < headerBytes)
      throw malformedMessage(`${payload.length} bytes where a header of ${headerBytes} belongs`);
    return this.readFrom(viewOf(payload), headerBytes, payload.length);
  }

  readFrom(view: DataView, start: number, end: number): ValueOfRows<R> {
    const value = { ...this.#blank };
    const unknown = readNodes(this.#byNumber, view, start, end, value);
    if (unknown) throw malformedMessage(`the ${unknown.name} of ${this.title} is none that is known`);
    const missing = this.#complete(value);
    if (missing) throw malformedMessage(`the ${missing} of ${this.title} is missing`);
    return value as unknown as ValueOfRows<R>;
  }

  /** `undefined` where a field is missing or unknown. */
  tryRead(view: DataView, start: number, end: number): ValueOfRows<R> | undefined {
    const value = { ...this.#blank };
    if (readNodes(this.#byNumber, view, start, end, value) || this.#complete(value)) return undefined;
    return value as unknown as ValueOfRows<R>;
  }

  /** Returns the name of a field that is missing. */
  #complete(value: Fields): string | undefined {
    for (const { name, fallback } of this.#needed) {
      if (value[name] !== undefined) continue;
      if (fallback === undefined) return name;
      value[name] = fallback;
    }
    return undefined;
  }

  #add(name: string, { path, kind, compute }: Row<unknown, Presence>): void {
    const numbers = typeof path === 'number' ? [path] : path;
    let nodes = this.#nodes;
    let byNumber = this.#byNumber;
    for (const [depth, number] of numbers.entries()) {
      const isNest = depth < numbers.length - 1;
      let node = isNest ? byNumber[number & NLA_TYPE_MASK] : undefined;
      if (!node) {
        node = { name, number, kind, compute, children: isNest ? [] : undefined, byNumber: [] };
        nodes.push(node);
        byNumber[number & NLA_TYPE_MASK] = node;
      }
      nodes = node.children ?? [];
      ({ byNumber } = node);
    }
  }
}

function writeNodes(writer: MessageWriter, nodes: readonly Node[], value: Fields): void {
  for (const { name, number, kind, compute, children } of nodes) {
    if (children) {
      const start = writer.openNest();
      writeNodes(writer, children, value);
      writer.closeNest(start, number, false);
      continue;
    }
    const field = compute ? compute(value) : value[name];
    if (field !== undefined) kind.write(writer, number, field);
  }
}

/** Returns the row whose value is unknown. */
function readNodes(
  byNumber: readonly (Node | undefined)[],
  view: DataView,
  start: number,
  end: number,
  into: Fields,
): Node | undefined {
  for (let at = start; at < end; ) {
    const valueEnd = attributeEnd(view, at, end);
    const node = byNumber[view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK];
    at += ATTRIBUTE_HEADER_BYTES;
    if (node?.children) {
      const unknown = readNodes(node.byNumber, view, at, valueEnd, into);
      if (unknown) return unknown;
    } else if (node) {
      const value = node.kind.read(view, at, valueEnd, into);
      if (value === UNKNOWN) return node;
      if (value !== undefined) into[node.name] = value;
    }
    at = align(valueEnd);
  }
  return undefined;
}

/** Where the attribute at `at` ends. Throws when that is beyond `end`. */
export function attributeEnd(view: DataView, at: number, end: number): number {
  const left = end - at;
  if (left < ATTRIBUTE_HEADER_BYTES) throw malformedMessage(`${left} bytes are no attribute`);
  const length = view.getUint16(at, LITTLE_ENDIAN);
  if (length < ATTRIBUTE_HEADER_BYTES || length > left)
    throw malformedMessage(`an attribute claims ${length} of ${left} bytes`);
  return at + length;
}

/** Where the first attribute of this type begins; 0 where there is none. */
export function findAttribute(view: DataView, start: number, end: number, type: number): number {
  for (let at = start; at < end; ) {
    const valueEnd = attributeEnd(view, at, end);
    if ((view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK) === type) return at;
    at = align(valueEnd);
  }
  return 0;
}

/** Attributes inside an attribute, as a value of its own. */
export function nested<R extends Rows>(table: AttributeTable<R>): AttributeKind<ValueOf<AttributeTable<R>>> {
  return {
    write: (writer, type, value) => {
      const start = writer.openNest();
      table.write(writer, value);
      writer.closeNest(start, type);
    },
    read: (view, start, end) => table.readFrom(view, start, end),
  };
}

const NFTA_LIST_ELEM = 1;

/** Any number of attributes inside an attribute, all of one kind. */
export function list<Value>(kind: AttributeKind<Value>): AttributeKind<readonly Value[]> {
  return {
    write: (writer, number, values) => {
      const start = writer.openNest();
      for (const value of values) kind.write(writer, NFTA_LIST_ELEM, value);
      writer.closeNest(start, number);
    },
    read: (view, start, end, read) => {
      const values: Value[] = [];
      for (let at = start; at < end; ) {
        const valueEnd = attributeEnd(view, at, end);
        const value = kind.read(view, at + ATTRIBUTE_HEADER_BYTES, valueEnd, read);
        if (value === UNKNOWN) return UNKNOWN;
        if (value !== undefined) values.push(value);
        at = align(valueEnd);
      }
      return values;
    },
  };
}
