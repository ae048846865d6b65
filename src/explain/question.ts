/** What is asked: which packet, from whom, to what. Text becomes a question; whether what it names exists is another matter. */
import { JunctionError } from '../errors.ts';
import { type Ip, parseIp } from '../model/ip.ts';
import { type ObjectKey, objectKey, type Protocol } from '../model/objects.ts';
import { didYouMean } from '../text/suggest.ts';
import { quote } from '../text/printable.ts';

/** A question that cannot be answered as it was asked; the hint says how to ask. */
export class QuestionError extends JunctionError {
  /** Which part of the question is the reason. */
  parameter: QuestionParameter | undefined;

  constructor(message: string, hint: string) {
    super('QUESTION_UNANSWERABLE', message, { hint });
  }
}

type QuestionParameter = 'from' | 'to';

/** What cannot be answered because of one part of the question says so. */
export async function because<T>(parameter: QuestionParameter, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof QuestionError) error.parameter = parameter;
    throw error;
  }
}

export type SourceQuestion =
  | { readonly kind: 'address'; readonly ip: Ip; readonly inInterface: string | undefined }
  | { readonly kind: 'pod'; readonly pod: ObjectKey }
  | { readonly kind: 'node' | 'outside' };

export type DestinationQuestion =
  | { readonly kind: 'address'; readonly ip: Ip; readonly port: number; readonly protocol: Protocol }
  | ({ readonly kind: 'service' } & ServiceQuestion);

export interface ServiceQuestion {
  readonly service: ObjectKey;
  /** Number or name; unset: all ports. */
  readonly port?: string;
  readonly protocol?: Protocol;
}

const SOURCES =
  'Say --from ADDRESS (or ADDRESS%INTERFACE), --from pod/NAMESPACE/NAME, --from node or --from outside.';
const DESTINATIONS =
  'Say --to ADDRESS:PORT, --to [IPV6]:PORT, with /udp or /sctp behind it if it is not TCP, or --to svc/NAMESPACE/NAME or svc/NAMESPACE/NAME:PORT.';
const SERVICES = 'Say NAMESPACE/NAME or NAMESPACE/NAME:PORT, with the number or the name of a port.';

/** Interface names are at most 15 characters of anything but slashes and white space. */
const INTERFACE = /^[^\s/%]{1,15}$/;

export function parseSource(text: string): SourceQuestion {
  if (text === 'node' || text === 'outside') return { kind: text };
  const [kind, ...rest] = text.split('/');
  if (kind === 'pod' || kind === 'pods') return { kind: 'pod', pod: parseObject(rest, text, 'pod', SOURCES) };
  const [address = '', inInterface, ...more] = text.split('%');
  const ip = parseIp(withoutBrackets(address));
  if (ip === undefined || more.length > 0 || (inInterface !== undefined && !INTERFACE.test(inInterface))) {
    const meant = didYouMean(text, ['node', 'outside']);
    throw new QuestionError(`${quote(text)} is not a source${meant}`, SOURCES);
  }
  return { kind: 'address', ip, inInterface };
}

export function parseDestination(text: string): DestinationQuestion {
  const service = /^(?:svc|service|services)\/(.*)$/s.exec(text);
  if (service) return { kind: 'service', ...readService(service[1] ?? '', text, DESTINATIONS) };
  const { rest, protocol } = splitProtocol(text);
  const [, address = '', port = ''] = /^(.*):([^:]*)$/s.exec(rest) ?? [];
  const ip = parseIp(withoutBrackets(address));
  // fd00::1:80 could mean two things.
  const isAmbiguous = address.includes(':') && !address.startsWith('[');
  if (ip === undefined || isAmbiguous) {
    const bare = parseIp(rest);
    if (bare !== undefined) throw new QuestionError(`${quote(text)} has no port`, DESTINATIONS);
    throw new QuestionError(`${quote(text)} is not a destination`, DESTINATIONS);
  }
  return { kind: 'address', ip, port: parsePort(port, text), protocol: protocol ?? 'TCP' };
}

/** `shop/web`, `shop/web:80`, `shop/dns:dns/udp`; also with `svc/` before it. */
export function parseService(text: string): ServiceQuestion {
  const [, name = ''] = /^(?:(?:svc|service|services)\/(?=[^/]*\/))?(.*)$/s.exec(text) ?? [];
  return readService(name, text, SERVICES);
}

function readService(text: string, whole: string, hint: string): ServiceQuestion {
  const { rest, protocol } = splitProtocol(text);
  const [name = '', port, ...more] = rest.split(':');
  const service = parseObject(name.split('/'), whole, 'Service', hint);
  if (more.length > 0 || port === '') throw new QuestionError(`${quote(whole)} is not a Service`, hint);
  return { service, ...(port !== undefined && { port }), ...(protocol && { protocol }) };
}

function parseObject(parts: readonly string[], whole: string, kind: string, hint: string): ObjectKey {
  const [namespace = '', name = '', ...more] = parts;
  if (namespace === '' || name === '' || more.length > 0)
    throw new QuestionError(`${quote(whole)} does not name a ${kind} with its namespace`, hint);
  return objectKey(namespace, name);
}

const PROTOCOL_NAMES: Readonly<Record<string, Protocol>> = { tcp: 'TCP', udp: 'UDP', sctp: 'SCTP' };

/** `10.0.0.1:53/udp` */
function splitProtocol(text: string): { readonly rest: string; readonly protocol: Protocol | undefined } {
  const slash = text.lastIndexOf('/');
  const before = text.slice(0, Math.max(0, slash));
  const name = text.slice(slash + 1).toLowerCase();
  // A Service may be named tcp: what stands behind a port or a whole name is a protocol.
  const isBehind = before.includes(':') || before.includes('/');
  if (!isBehind || !Object.hasOwn(PROTOCOL_NAMES, name)) return { rest: text, protocol: undefined };
  return { rest: before, protocol: PROTOCOL_NAMES[name] };
}

function parsePort(text: string, whole: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    throw new QuestionError(`${quote(whole)}: ${quote(text)} is not a port from 1 to 65535`, DESTINATIONS);
  return port;
}

function withoutBrackets(text: string): string {
  return text.replace(/^\[(.*)\]$/s, '$1');
}
