/** Sets and their elements, between our words and the kernel's. */
import type { Element, ElementKey, FieldType, TableSet } from './rules/rule.ts';
import { type Cidr, type Family, type Ip, parseCidr } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { malformedMessage } from '../../netlink/codec.ts';
import { decodeIp, protocolByte, rangeOf } from '../../netlink/inet.ts';
import type { DataType, Selector, SetFields, SetSpec } from '../../netlink/nftables/setSpec.ts';
import { ElementList } from '../../netlink/nftables/elementList.ts';
import type { SetElement } from '../../netlink/nftables/elements.ts';

export function specOf(set: TableSet, family: Family): SetSpec {
  const { name, data, ranges, dynamicSize, counts, comment } = set;
  return {
    name,
    key: fieldsOf(set.key, family),
    ...(data === 'verdict' && { data }),
    ...(data === 'endpoint' && { data: endpointFields(isDrawn(set.key), family) }),
    ...(ranges && { flags: ['interval'] }),
    ...(dynamicSize !== undefined && { flags: ['timeout', 'dynamic'], size: dynamicSize }),
    ...(counts && { counter: true }),
    ...(comment !== undefined && { comment }),
  };
}

function isDrawn(key: readonly FieldType[]): boolean {
  return key.some((field) => typeof field === 'object');
}

function fieldsOf(key: readonly FieldType[], family: Family): SetFields {
  if (!isDrawn(key)) return { type: key.map((field) => dataType(field, family)) };
  return { typeof: key.map((field) => selector(field, family)) };
}

function endpointFields(byExpressions: boolean, family: Family): SetFields {
  if (byExpressions) return { typeof: [selector('address', family), 'th dport'] };
  return { type: [dataType('address', family), 'inet_service'] };
}

function dataType(field: FieldType, family: Family): DataType {
  if (field === 'address') return family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr';
  return field === 'protocol' ? 'inet_proto' : 'inet_service';
}

function selector(field: FieldType, family: Family): Selector {
  if (typeof field === 'object') return `numgen random mod ${field.drawnOf}`;
  if (field === 'address') return family === 'IPv4' ? 'ip daddr' : 'ip6 daddr';
  return field === 'protocol' ? 'meta l4proto' : 'th dport';
}

/** `keysOnly`: for deleting. */
export function listOf(set: TableSet, elements: readonly Element[], keysOnly: boolean): ElementList {
  const list = new ElementList(elements.length * 96);
  for (const element of elements) {
    if (set.ranges && set.key.length === 1) writeInterval(list, element.key);
    else writeElement(list, set, element, keysOnly);
  }
  return list;
}

function writeElement(list: ElementList, set: TableSet, element: Element, keysOnly: boolean): void {
  list.begin();
  writeKey(list, set, element.key, 'first');
  if (set.ranges) writeKey(list.rangeEnd(), set, element.key, 'last');
  if (!keysOnly) {
    const { endpoint, chain, comment } = element;
    if (endpoint) list.data().ip(endpoint.ip).port(endpoint.port);
    if (chain !== undefined) list.verdict({ verdict: 'jump', chain });
    if (comment !== undefined) list.comment(comment);
  }
  list.end();
}

function writeKey(list: ElementList, set: TableSet, key: ElementKey, end: 'first' | 'last'): void {
  let isSecond = false;
  let isSecondPort = false;
  for (const field of set.key) {
    if (typeof field === 'object') list.index(required(key.index, set));
    else if (field === 'protocol') list.protocol(required(key.protocol, set));
    else if (field === 'port') {
      list.port(required(isSecondPort ? key.secondPort : key.port, set));
      isSecondPort = true;
    } else if (!isSecond && key.address !== undefined) {
      list.ip(key.address);
      isSecond = true;
    } else if (key.range !== undefined) list.raw(rangeOf(key.range)[end]);
    else list.ip(required(key.secondAddress, set));
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
  if (set.ranges && set.key.length === 1) return intervalsOf(set, given);
  const elements: Element[] = [];
  const unknown: SetElement[] = [];
  for (const each of given) {
    const element = elementOf(set, each, family);
    if (element) elements.push(element);
    else unknown.push(each);
  }
  return { elements, unknown };
}

function elementOf(set: TableSet, element: SetElement, family: Family): Element | undefined {
  const { data, verdict, comment } = element;
  const key = keyOf(set, element, family);
  if (!key || (data && data.length < addressBytes(family) + PORT_BYTES)) return undefined;
  return {
    set: set.name,
    key,
    ...(data && { endpoint: endpointOf(data, family) }),
    ...(verdict?.chain !== undefined && { chain: verdict.chain }),
    ...(comment !== undefined && { comment }),
  };
}

const PORT_BYTES = 2;

/** `undefined`: of another protocol than services have, with a range that is no network, or for a set of another kind. */
export function keyOf(set: TableSet, { key, keyEnd }: SetElement, family: Family): ElementKey | undefined {
  const bytes = addressBytes(family);
  if (key.length < set.key.reduce((sum, field) => sum + (field === 'address' ? bytes : 4), 0))
    return undefined;
  const result: {
    address?: Ip;
    protocol?: Protocol;
    port?: number;
    index?: number;
    secondAddress?: Ip;
    secondPort?: number;
    range?: Cidr;
  } = {};
  let at = 0;
  for (const field of set.key) {
    const size = field === 'address' ? bytes : 4;
    const value = key.subarray(at, at + size);
    if (typeof field === 'object') result.index = new DataView(value.slice().buffer).getUint32(0, true);
    else if (field === 'protocol') {
      const protocol = protocolByte.word(value[0] ?? 0);
      if (!protocol) return undefined;
      result.protocol = protocol;
    } else if (field === 'port') {
      if (result.port === undefined) result.port = portOf(value);
      else result.secondPort = portOf(value);
    } else if (result.address === undefined) result.address = decodeIp(value);
    else if (set.ranges) {
      const range = cidrOf(value, keyEnd?.subarray(at, at + size) ?? value);
      if (range === undefined) return undefined;
      result.range = range;
    } else result.secondAddress = decodeIp(value);
    at += size;
  }
  return result;
}

export function endpointOf(data: Uint8Array, family: Family): { readonly ip: Ip; readonly port: number } {
  const bytes = addressBytes(family);
  return { ip: decodeIp(data.subarray(0, bytes)), port: portOf(data.subarray(bytes)) };
}

function addressBytes(family: Family): number {
  return family === 'IPv4' ? 4 : 16;
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
