/** Connections by blocking calls: what is timed is the network, and not an event loop. */
import { createRequire } from 'node:module';
import { libc } from '../../src/system/libc.ts';

const AF_INET = 2;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOL_SOCKET = 1;
const SO_LINGER = 13;
const SO_RCVTIMEO = 20;
const ONE_BYTE = Uint8Array.of(1);
const SECONDS_TO_WAIT = 2n;

type Connect = (fd: number, address: Uint8Array, length: number) => number;

let bound: Connect | undefined;

function connect(): Connect {
  if (bound) return bound;
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
  const prototype = 'int connect(int fd, const void *address, uint32_t length)';
  bound = koffi.load('libc.so.6').func(prototype) as never as Connect;
  return bound;
}

/** Microseconds until the connection is there. It is reset afterwards, so that no port is kept from others. */
export function tcpConnect(address: Uint8Array): number {
  const { socket, setsockopt, close } = libc();
  const fd = socket(AF_INET, SOCK_STREAM, 0);
  const linger = new Uint8Array(new Int32Array([1, 0]).buffer);
  setsockopt(fd, SOL_SOCKET, SO_LINGER, linger, linger.length);
  const dial = connect();
  const started = process.hrtime.bigint();
  const result = dial(fd, address, address.length);
  const elapsed = Number(process.hrtime.bigint() - started) / 1000;
  close(fd);
  if (result !== 0) throw new Error('no connection');
  return elapsed;
}

/** Microseconds until the first datagram from a new port is answered. */
export function udpEcho(address: Uint8Array): number {
  const { socket, setsockopt, sendto, read, close } = libc();
  const fd = socket(AF_INET, SOCK_DGRAM, 0);
  const timeout = new Uint8Array(new BigInt64Array([SECONDS_TO_WAIT, 0n]).buffer);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, timeout, timeout.length);
  const buffer = new Uint8Array(16);
  const started = process.hrtime.bigint();
  sendto(fd, ONE_BYTE, ONE_BYTE.length, 0, address, address.length);
  const received = read(fd, buffer, buffer.length);
  const elapsed = Number(process.hrtime.bigint() - started) / 1000;
  close(fd);
  if (received !== 1) throw new Error('no answer');
  return elapsed;
}

/** struct sockaddr_in */
export function socketAddress(address: string, port: number): Uint8Array {
  const bytes = new Uint8Array(16);
  bytes.set(new Uint8Array(new Uint16Array([AF_INET]).buffer));
  bytes.set([port >> 8, port & 255, ...address.split('.').map(Number)], 2);
  return bytes;
}
