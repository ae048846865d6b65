import { createSocket } from 'node:dgram';
import type { Dial, Operations, Outcome } from '../protocol.ts';
import { failureOf, isCallerMistake } from './failure.ts';
import { converse } from './session.ts';

/**
 * A datagram that the host's own rules reject fails to be sent (EPERM), and what it was rejected with comes after: at once,
 * but on a busy machine 30 ms were not enough.
 */
const REJECTION_MS = 200;

export function request(input: Operations['request']['input']): Promise<Outcome> {
  return input.protocol === 'udp' ? requestUdp(input) : requestStream(input, input.protocol);
}

async function requestStream(input: Dial, protocol: 'tcp' | 'sctp'): Promise<Outcome> {
  const begun = performance.now();
  const conversation = await converse(input, protocol);
  if ('outcome' in conversation) return conversation;
  const outcome = await conversation.ask(Math.max(1, input.timeoutMs - (performance.now() - begun)));
  conversation.end();
  return outcome;
}

/**
 * One datagram, never repeated: a lost one must show. The socket is connected because only then does the kernel hand
 * over ICMP errors, and even then only port and protocol unreachable: a host that cannot be reached is a timeout.
 */
function requestUdp(input: Dial): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const family = input.address.includes(':') ? 'udp6' : 'udp4';
    const socket = createSocket({ type: family });
    let settled = false;
    const settle = (report: () => void): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      socket.close();
      report();
    };
    const succeed = (outcome: Outcome): void => settle(() => resolve(outcome));
    const fail = (error: NodeJS.ErrnoException): void =>
      settle(() => (isCallerMistake(error) ? reject(error) : resolve(failureOf(error))));
    const timer = setTimeout(() => succeed({ outcome: 'timeout' }), input.timeoutMs);
    socket.on('error', fail);
    socket.on('message', (text) => succeed({ outcome: 'answer', reply: JSON.parse(text.toString()) }));
    socket.on('connect', () => {
      socket.send('?\n', (error) => {
        // Timers that are late come before sockets: so those have their turn first.
        if (error) setTimeout(() => setImmediate(() => fail(error)), REJECTION_MS);
      });
    });
    socket.bind(
      {
        port: input.sourcePort ?? 0,
        ...(input.source !== undefined && { address: input.source }),
      },
      () => socket.connect(input.port, input.address),
    );
  });
}
