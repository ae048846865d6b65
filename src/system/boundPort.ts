/**
 * A port that is bound and nothing more: nobody else can have it, and nobody gets an answer from it.
 *
 * By libc, because Node listens where it binds, and what listens accepts connections that no rule has caught. A TCP
 * socket that does not listen is refused to clients as if nobody had the port. Without SO_REUSEADDR on it the kernel
 * also refuses it to programs that set theirs, and passes it over when it picks a port for an outgoing connection.
 * Numbers from asm-generic/socket.h, linux/in6.h and linux/socket.h.
 */
import { type Family, type Ip, parseBytes } from '../model/ip.ts';
import { errnoName, libc } from './libc.ts';

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
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;

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
