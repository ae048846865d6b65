/** Sets and their elements, between our words and the kernel's. */
import { declarationOf } from './rules/print.ts';
import { isOfIntervals } from './rules/table.ts';
import type { Element, ElementKey, TableSet } from './rules/table.ts';
import { type Cidr, type Family, parseCidr } from '../../model/ip.ts';
import { malformedMessage } from '../../netlink/codec.ts';
import { decodeIp, protocolByte, rangeOf } from '../../netlink/inet.ts';
import type { SetSpec } from '../../netlink/nftables/setSpec.ts';
import { ElementList, type SetElement } from '../../netlink/nftables/elements.ts';

export function specOf(set: TableSet, family: Family): SetSpec {
  const { name, ranges, dynamicSize, counts, comment } = set;
  return {
    name,
    ...declarationOf(set, family),
    ...(ranges && { flags: ['interval'] }),
    ...(dynamicSize !== undefined && { flags: ['timeout', 'dynamic'], size: dynamicSize }),
    ...(counts && { counter: true }),
    ...(comment !== undefined && { comment }),
  };
}

type Parts = readonly (keyof ElementKey)[];

/** Where an element's key has the value of each field. */
function partsOf({ key, ranges }: TableSet): Parts {
  const parts: (keyof ElementKey)[] = [];
  for (const field of key) {
    const isSecond = typeof field === 'string' && parts.includes(field);
    if (typeof field === 'object') parts.push('index');
    else if (field === 'port') parts.push(isSecond ? 'secondPort' : 'port');
    else if (field === 'address' && isSecond) parts.push(ranges ? 'range' : 'secondAddress');
    else parts.push(field);
  }
  return parts;
}

/** `keysOnly`: for deleting. */
export function listOf(set: TableSet, elements: readonly Element[], keysOnly: boolean): ElementList {
  const list = new ElementList(elements.length * 96);
  const parts = partsOf(set);
  for (const { key, endpoint, chain, comment, lifetime } of elements) {
    if (isOfIntervals(set)) {
      writeInterval(list, key);
      continue;
    }
    writeKey(list.begin(), set, parts, key, 'first');
    if (set.ranges) writeKey(list.rangeEnd(), set, parts, key, 'last');
    if (!keysOnly) {
      if (endpoint) list.data().ip(endpoint.ip).port(endpoint.port);
      if (chain !== undefined) list.verdict({ verdict: 'jump', chain });
      if (comment !== undefined) list.comment(comment);
      if (lifetime) list.timeout(lifetime.timeoutMs).expiration(lifetime.leftMs);
    }
    list.end();
  }
  return list;
}

function writeKey(
  list: ElementList,
  set: TableSet,
  parts: Parts,
  key: ElementKey,
  end: 'first' | 'last',
): void {
  for (const part of parts) {
    if (part === 'index') list.index(required(key.index, set));
    else if (part === 'protocol') list.protocol(required(key.protocol, set));
    else if (part === 'port' || part === 'secondPort') list.port(required(key[part], set));
    else if (part === 'range') list.raw(rangeOf(required(key.range, set))[end]);
    else list.ip(required(key[part], set));
  }
}

function required<T>(value: T | undefined, { name }: TableSet): T {
  if (value === undefined) throw malformedMessage(`an element of ${name} lacks a part of its key`);
  return value;
}

/** Where it begins, and where it has ended. */
function writeInterval(list: ElementList, { range }: ElementKey): void {
  if (range === undefined) return;
  const { first, beyond } = rangeOf(range);
  list.begin().raw(first).end();
  if (beyond) list.begin().raw(beyond).intervalEnd().end();
}

interface ReadElements {
  readonly elements: readonly Element[];
  /** Those that we cannot represent, so that they are another program's: another protocol, a range that is no network. */
  readonly unknown: readonly SetElement[];
}

export function elementsOf(set: TableSet, given: readonly SetElement[], family: Family): ReadElements {
  if (isOfIntervals(set)) return intervalsOf(set, given);
  const read = elementReader(set, family);
  const elements: Element[] = [];
  const unknown: SetElement[] = [];
  for (const each of given) {
    const element = read(each);
    if (element) elements.push(element);
    else unknown.push(each);
  }
  return { elements, unknown };
}

/** `undefined`: of another protocol than services have, with a range that is no network, or for a set of another kind. */
export function elementReader(set: TableSet, family: Family): (given: SetElement) => Element | undefined {
  const bytes = family === 'IPv4' ? 4 : 16;
  const parts = partsOf(set);
  return (given) => {
    const { data, verdict, comment } = given;
    const key = keyOf(parts, given, bytes);
    if (!key || (data && data.length < bytes + PORT_BYTES)) return undefined;
    return {
      set: set.name,
      key,
      ...(data && {
        endpoint: { ip: decodeIp(data.subarray(0, bytes)), port: portOf(data.subarray(bytes)) },
      }),
      ...(verdict?.chain !== undefined && { chain: verdict.chain }),
      ...(comment !== undefined && { comment }),
    };
  };
}

const PORT_BYTES = 2;
/** All but addresses take one register. */
const SHORT: ReadonlySet<keyof ElementKey> = new Set(['protocol', 'port', 'secondPort', 'index']);

function keyOf(parts: Parts, { key, keyEnd }: SetElement, addressBytes: number): ElementKey | undefined {
  const result: { -readonly [Part in keyof ElementKey]: ElementKey[Part] } = {};
  let at = 0;
  for (const part of parts) {
    const size = SHORT.has(part) ? 4 : addressBytes;
    const value = key.subarray(at, at + size);
    if (value.length < size) return undefined;
    if (part === 'index') result.index = new DataView(value.slice().buffer).getUint32(0, true);
    else if (part === 'port' || part === 'secondPort') result[part] = portOf(value);
    else if (part === 'protocol') {
      const protocol = protocolByte.word(value[0] ?? 0);
      if (!protocol) return undefined;
      result.protocol = protocol;
    } else if (part === 'range') {
      const range = cidrOf(value, keyEnd?.subarray(at, at + size) ?? value);
      if (range === undefined) return undefined;
      result.range = range;
    } else result[part] = decodeIp(value);
    at += size;
  }
  return result;
}

function portOf(bytes: Uint8Array): number {
  return ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
}

/** The network from its first to its last address; `undefined` where these are no network. */
function cidrOf(first: Uint8Array, last: Uint8Array): Cidr | undefined {
  let prefix = 0;
  for (; prefix < first.length * 8; prefix++) {
    const bit = 0x80 >> (prefix & 7);
    if ((((first[prefix >> 3] ?? 0) ^ (last[prefix >> 3] ?? 0)) & bit) !== 0) break;
  }
  const cidr = parseCidr(`${decodeIp(first)}/${prefix}`);
  if (!cidr) return undefined;
  const range = rangeOf(cidr);
  return Buffer.compare(range.first, first) === 0 && Buffer.compare(range.last, last) === 0
    ? cidr
    : undefined;
}

/** Ends are elements of their own, and come in any order. Where one interval ends, the next may begin. */
function intervalsOf(set: TableSet, given: readonly SetElement[]): ReadElements {
  const sorted = [...given].sort(
    (a, b) => Buffer.compare(a.key, b.key) || Number(b.isIntervalEnd ?? 0) - Number(a.isIntervalEnd ?? 0),
  );
  const elements: Element[] = [];
  const unknown: SetElement[] = [];
  for (const [index, element] of sorted.entries()) {
    if (element.isIntervalEnd) continue;
    const next = sorted[index + 1];
    const end = next?.isIntervalEnd ? next : undefined;
    const last = end ? before(end.key) : new Uint8Array(element.key.length).fill(0xff);
    const range = cidrOf(element.key, last);
    if (range !== undefined) elements.push({ set: set.name, key: { range } });
    else unknown.push(element, ...(end ? [end] : []));
  }
  return { elements, unknown };
}

function before(key: Uint8Array): Uint8Array {
  const bytes = key.slice();
  for (let index = bytes.length - 1; index >= 0; index--) {
    const byte = ((bytes[index] ?? 0) - 1) & 0xff;
    bytes[index] = byte;
    if (byte !== 0xff) break;
  }
  return bytes;
}
