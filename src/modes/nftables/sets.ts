/** Sets and their elements, between our words and the kernel's. */
import { declarationOf, NFT_FAMILY } from './rules/print.ts';
import { isOfIntervals } from './rules/table.ts';
import type { Element, ElementKey, HookSpec, TableSet } from './rules/table.ts';
import type { Family } from '../../model/ip.ts';
import { malformedMessage, MessageWriter } from '../../netlink/codec.ts';
import { decodeIp, protocolByte, rangeOf } from '../../netlink/inet.ts';
import type { BaseChain } from '../../netlink/nftables/objects.ts';
import type { SetSpec } from '../../netlink/nftables/setSpec.ts';
import {
  decodeElements,
  ElementList,
  elementsRequest,
  type SetElement,
} from '../../netlink/nftables/elements.ts';

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

export function baseOf({ point, priority }: HookSpec): BaseChain {
  return { type: 'nat', hook: point, priority, policy: 'accept' };
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

/** Not of ranges. `undefined`: of another protocol than services have, or for a set of another kind. */
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

function keyOf(parts: Parts, { key }: SetElement, addressBytes: number): ElementKey | undefined {
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
    } else if (part !== 'range') result[part] = decodeIp(value);
    at += size;
  }
  return result;
}

function portOf(bytes: Uint8Array): number {
  return ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
}

/** As the kernel would list them: of intervals, both ends. */
export function encodedElements(
  set: TableSet,
  elements: readonly Element[],
  family: Family,
): readonly SetElement[] {
  const place = { family: NFT_FAMILY[family], table: '', set: set.name };
  return Array.from(listOf(set, elements, false).messages()).flatMap((bytes) => {
    const writer = new MessageWriter(bytes.length + 64);
    elementsRequest('new elements', 0, place, bytes).payload(writer);
    return decodeElements(writer.finish()).elements;
  });
}
