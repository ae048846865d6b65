/** Dials a service again and again from a client's namespace, and prints when it reaches another endpoint. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reached, WatchTask } from './messages.ts';

const PAUSE_MS = 1;
const PATIENCE_MS = 250;

function reached({ address, port }: WatchTask): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: PATIENCE_MS });
    let text = '';
    socket.on('data', (bytes) => (text += bytes.toString()));
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve(text.trim()));
  });
}

const task = JSON.parse(process.argv[2] ?? '{}') as WatchTask;
let last = '';
for (;;) {
  const endpoint = await reached(task);
  if (endpoint !== '' && endpoint !== last) {
    last = endpoint;
    process.stdout.write(`${JSON.stringify({ at: Date.now(), endpoint } satisfies Reached)}\n`);
  }
  await sleep(PAUSE_MS);
}
