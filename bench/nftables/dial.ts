/** Two programs: one that answers at endpoints, and one that dials them, by a service's address and directly. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { median } from '../spread.ts';
import type { AnswerTask, DialTask, Latencies, PacketsRun } from './messages.ts';
import { socketAddress, tcpConnect, udpEcho } from './sockets.ts';

const WARM_UP = 100;

export async function answer({ addresses, port }: AnswerTask): Promise<never> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    // Who reads it learns which endpoint it has reached.
    socket.end(`${socket.localAddress}\n`);
  });
  server.listen(port, '0.0.0.0');
  await once(server, 'listening');
  for (const address of addresses) {
    const socket = createSocket('udp4');
    socket.on('message', (bytes, from) => socket.send(bytes, from.port, from.address));
    socket.bind(port, address);
    await once(socket, 'listening');
  }
  process.stdout.write('ready\n');
  return new Promise(() => {});
}

export function dial({ service, endpoints, samples }: DialTask): PacketsRun {
  const byService = socketAddress(service.address, service.port);
  const direct = endpoints.addresses.map((address) => socketAddress(address, endpoints.port));
  const measure = (connect: (address: Uint8Array) => number): Latencies => {
    const times = { direct: [] as number[], service: [] as number[] };
    for (let sample = -WARM_UP; sample < samples; sample++) {
      const first = connect(direct[Math.abs(sample) % direct.length] ?? byService);
      const second = connect(byService);
      if (sample < 0) continue;
      times.direct.push(first);
      times.service.push(second);
    }
    return { direct: median(times.direct), service: median(times.service) };
  };
  return { tcp: measure(tcpConnect), udp: measure(udpEcho) };
}
