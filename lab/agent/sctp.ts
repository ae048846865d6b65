/**
 * SCTP for Node, which has none. libc makes the socket; from then on Node takes it for one of TCP, and all that it does
 * with those (bind, connect, accept, read, write, reset) means the same to a one-to-one socket of SCTP.
 * Numbers from linux/in.h, linux/in6.h and linux/socket.h.
 */
import { Socket } from 'node:net';
import { JunctionError } from '../../src/errors.ts';
import { socketAddress } from '../../src/system/heldPorts.ts';
import { errnoName, libc } from '../../src/system/libc.ts';
import { type Family, familyOf, type Ip, parseIp } from '../../src/model/ip.ts';

const AF = { IPv4: 2, IPv6: 10 } as const;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const IPPROTO_SCTP = 132;
/** Level and name of the option by which a socket gets ICMP errors, which SCTP otherwise only takes note of. */
const RECEIVE_ERRORS = { IPv4: [0, 11], IPv6: [41, 25] } as const;

/** A socket that is not connected yet. */
export function sctpSocket(destination: string): Socket {
  return new Socket({ fd: open(familyOf(known(destination))), readable: true, writable: true });
}

/** A bound socket's number, for a server to listen on. */
export function bindSctp(address: string, port: number): number {
  const ip = known(address);
  const family = familyOf(ip);
  const fd = open(family);
  const bytes = socketAddress({ family, ip, port });
  if (libc().bind(fd, bytes, bytes.length) === 0) return fd;
  const name = errnoName(libc().errno());
  libc().close(fd);
  throw new Error(`cannot listen on SCTP port ${port} of ${address}: ${name}`);
}

/** `null` where there is SCTP. */
export function whyNoSctp(): string | null {
  try {
    libc().close(open('IPv4'));
    return null;
  } catch (error) {
    return error instanceof JunctionError ? error.message : 'this kernel has no SCTP (module sctp)';
  }
}

function open(family: Family): number {
  const { socket, setsockopt, errno } = libc();
  const fd = socket(AF[family], SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
  if (fd < 0) throw new Error(`no SCTP socket: ${errnoName(errno())}`);
  const [level, name] = RECEIVE_ERRORS[family];
  setsockopt(fd, level, name, new Uint8Array(new Int32Array([1]).buffer), 4);
  return fd;
}

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
