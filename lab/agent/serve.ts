import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Listen, Reply, Transport } from '../protocol.ts';
import { readLines } from './lines.ts';
import { bindSctp } from './sctp.ts';

type Listener = Server | DatagramSocket;

const servings = new Map<number, readonly Listener[]>();
let lastServing = 0;

export async function serve(host: string, listens: readonly Listen[]): Promise<number> {
  const listeners = await Promise.all(listens.map((listen) => SERVERS[listen.protocol](host, listen)));
  servings.set(++lastServing, listeners);
  return lastServing;
}

/** Stops listening; connections that are open stay open, as they do when a real server drains. */
export function stopServing(serving: number): null {
  for (const listener of servings.get(serving) ?? []) listener.close();
  servings.delete(serving);
  return null;
}

const SERVERS: Readonly<Record<Transport, (host: string, listen: Listen) => Promise<Listener>>> = {
  tcp: serveTcp,
  udp: serveUdp,
  sctp: serveSctp,
};

async function serveTcp(host: string, { port, address }: Listen): Promise<Server> {
  const server = createServer((socket) => answerLines(host, 'tcp', socket));
  server.listen({ port, host: address ?? '::' });
  await once(server, 'listening');
  return server;
}

async function serveSctp(host: string, { port, address }: Listen): Promise<Server> {
  // A wildcard socket announces all addresses of the host to its peer, and the peer may go on with one that nobody translates.
  if (address === undefined) throw new Error('an SCTP server needs an address');
  const server = createServer((socket) => answerLines(host, 'sctp', socket));
  server.listen({ fd: bindSctp(address, port) });
  await once(server, 'listening');
  return server;
}

function answerLines(host: string, protocol: 'tcp' | 'sctp', socket: Socket): void {
  socket.on('error', () => socket.destroy());
  const reply: Reply = {
    host,
    address: plain(socket.localAddress ?? ''),
    port: socket.localPort ?? 0,
    peer: plain(socket.remoteAddress ?? ''),
    protocol,
  };
  readLines(socket, () => socket.write(`${JSON.stringify(reply)}\n`));
}

async function serveUdp(host: string, { port, address }: Listen): Promise<DatagramSocket> {
  // A wildcard socket cannot say which address a datagram came to, and would answer from whichever the route prefers.
  if (address === undefined) throw new Error('a UDP server needs an address');
  const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4' });
  socket.on('message', (_, peer) => {
    const reply: Reply = { host, address, port, peer: plain(peer.address), protocol: 'udp' };
    socket.send(JSON.stringify(reply), peer.port, peer.address, () => {});
  });
  socket.bind({ port, address });
  await once(socket, 'listening');
  socket.on('error', () => {});
  return socket;
}

/** Dual-stack sockets show IPv4 peers as `::ffff:10.0.0.1`. */
function plain(address: string): string {
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}
