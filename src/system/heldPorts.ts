/**
 * Keeps the ports of services from being taken by a program on the node.
 *
 * The rules send packets on before any socket sees them, so a program that takes a node port starts without a
 * complaint and never gets a packet. Holding the port makes it fail instead, where its owner looks. The rules are
 * written whether or not a port can be held.
 */
import { type Ip, type Family, parseBytes } from '../model/ip.ts';
import { answersNodePorts } from '../plan/decide.ts';
import type { Plan } from '../plan/types.ts';
import { errnoName, libc, SOCK_CLOEXEC, SOL_SOCKET } from './libc.ts';

export interface HeldPort extends PortAddress {
  /** `node port of default/web:http` */
  readonly description: string;
}

const KINDS = { nodePort: 'node port', externalIP: 'external IP' } as const;

/** Node ports, and external IPs that this machine has. SCTP is left out: loading its module is not ours to do. */
export function heldPortsOf(
  { family, view, servicePorts }: Plan,
  localIps: readonly Ip[],
): readonly HeldPort[] {
  const isAll = view.nodePorts.ranges === 'all';
  const nodePortIps = localIps.filter((ip) => answersNodePorts(view.nodePorts, ip) && !isLinkLocal(ip));
  const ports = new Map<string, HeldPort>();
  for (const { name, protocol, frontends } of servicePorts.values()) {
    if (protocol === 'SCTP') continue;
    for (const { kind, address, port } of frontends) {
      if (kind !== 'nodePort' && kind !== 'externalIP') continue;
      const externalIps = localIps.filter((ip) => ip === address);
      const ips = kind === 'externalIP' ? externalIps : isAll ? ([''] as const) : nodePortIps;
      for (const ip of ips) {
        const held = { family, ip, port, protocol, description: `${KINDS[kind]} of ${name}` };
        ports.set(keyOf(held), held);
      }
    }
  }
  // A socket for every address would be in the way of one for a single address.
  return [...ports.values()].filter((held) => held.ip === '' || !ports.has(keyOf({ ...held, ip: '' })));
}

/** Means nothing without an interface, and cannot be bound without one. */
function isLinkLocal(ip: Ip): boolean {
  return /^fe[89ab]/.test(ip);
}

interface HeldPortsOptions {
  /** A port is refused once, until it is held or wanted no longer. It recovers when it was refused before. */
  readonly onEvent: (kind: 'refused' | 'recovered', message: string) => void;
  readonly bind?: ((address: PortAddress) => BindResult) | undefined;
}

export class HeldPorts {
  readonly #onEvent: HeldPortsOptions['onEvent'];
  readonly #bind: (address: PortAddress) => BindResult;
  readonly #held = new Map<string, () => void>();
  /** By key, why not. */
  readonly #refused = new Map<string, string>();

  constructor({ onEvent, bind = bindPort }: HeldPortsOptions) {
    this.#onEvent = onEvent;
    this.#bind = bind;
  }

  /** Wanted, and held by another program: worth another try even when no service has changed. */
  get refused(): number {
    return this.#refused.size;
  }

  reconcile(desired: Iterable<HeldPort>): void {
    const wanted = new Map([...desired].map((port) => [keyOf(port), port] as const));
    // Old ones first: a socket for every address and one for a single address exclude each other.
    for (const [key, close] of this.#held) {
      if (wanted.has(key)) continue;
      close();
      this.#held.delete(key);
    }
    for (const key of this.#refused.keys()) if (!wanted.has(key)) this.#refused.delete(key);
    for (const [key, port] of wanted) if (!this.#held.has(key)) this.#take(key, port);
  }

  close(): void {
    this.reconcile([]);
  }

  #take(key: string, port: HeldPort): void {
    const result = this.#bind(port);
    const before = this.#refused.get(key);
    if (result.kind === 'bound') {
      this.#held.set(key, result.close);
      if (this.#refused.delete(key)) this.#onEvent('recovered', `${printPort(port)} is held now`);
    } else if (result.errno !== before) {
      this.#refused.set(key, result.errno);
      this.#onEvent('refused', `${printPort(port)} ${explain(result.errno, port)}`);
    }
  }
}

function explain(errno: string, { port }: HeldPort): string {
  if (errno !== 'EADDRINUSE') return `cannot be held: ${errno}`;
  return `is taken by another program, whose clients reach the service instead; find it with "ss -anp sport = :${port}", and move it to another port`;
}

/** `30080/TCP, the node port of default/web:http,` */
function printPort({ ip, port, protocol, family, description }: HeldPort): string {
  const address = ip === '' ? '' : family === 'IPv6' ? `[${ip}]:` : `${ip}:`;
  return `${address}${port}/${protocol} (${family}), the ${description},`;
}

function keyOf({ family, ip, port, protocol }: PortAddress): string {
  return `${family} ${ip} ${port}/${protocol}`;
}

export interface PortAddress {
  readonly family: Family;
  /** Empty: every address of the family. */
  readonly ip: Ip | '';
  readonly port: number;
  readonly protocol: 'TCP' | 'UDP';
}

export type BindResult =
  | { readonly kind: 'bound'; readonly close: () => void }
  /** `EADDRINUSE` */
  | { readonly kind: 'refused'; readonly errno: string };

const AF = { IPv4: 2, IPv6: 10 } as const;
const SOCK = { TCP: 1, UDP: 2 } as const;
const SO_RCVBUF = 8;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;

/**
 * Binds a port and does not listen: no other program can have it, and no client gets an answer from it.
 *
 * By libc, because Node listens where it binds, and what listens accepts connections that no rule has caught. A TCP
 * socket that does not listen is refused to clients as if nobody had the port. Without SO_REUSEADDR on it the kernel
 * also refuses it to programs that set theirs, and passes it over when it picks a port for an outgoing connection.
 * Numbers from asm-generic/socket.h, linux/in6.h and linux/socket.h.
 */
export function bindPort(address: PortAddress): BindResult {
  const { socket, close, errno } = libc();
  const fd = socket(AF[address.family], SOCK[address.protocol] | SOCK_CLOEXEC, 0);
  if (fd < 0) return { kind: 'refused', errno: errnoName(errno()) };
  const failure = prepare(fd, address);
  if (failure === undefined) return { kind: 'bound', close: () => void close(fd) };
  close(fd);
  return { kind: 'refused', errno: failure };
}

function prepare(fd: number, address: PortAddress): string | undefined {
  const { bind, setsockopt, errno } = libc();
  const set = (level: number, name: number, value: number): boolean =>
    setsockopt(fd, level, name, new Uint8Array(new Int32Array([value]).buffer), 4) === 0;
  // Nobody reads: what no rule has caught may fill the smallest buffer there is, and is dropped from then on.
  if (address.protocol === 'UDP' && !set(SOL_SOCKET, SO_RCVBUF, 0)) return errnoName(errno());
  if (address.family === 'IPv6' && !set(IPPROTO_IPV6, IPV6_V6ONLY, 1)) return errnoName(errno());
  const bytes = socketAddress(address);
  return bind(fd, bytes, bytes.length) === 0 ? undefined : errnoName(errno());
}

/** `sockaddr_in` and `sockaddr_in6`. */
export function socketAddress({ family, ip, port }: Pick<PortAddress, 'family' | 'ip' | 'port'>): Uint8Array {
  const bytes = new Uint8Array(family === 'IPv4' ? 16 : 28);
  bytes.set(new Uint8Array(new Uint16Array([AF[family]]).buffer), 0);
  new DataView(bytes.buffer).setUint16(2, port);
  const address = ip === '' ? undefined : parseBytes(ip);
  if (address) bytes.set(address, family === 'IPv4' ? 4 : 8);
  return bytes;
}
