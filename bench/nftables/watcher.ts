/** Dials a service again and again from a client's namespace, and prints when it reaches another endpoint. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reached, WatchTask } from './messages.ts';

const PAUSE_MS = 1;
const PATIENCE_MS = 250;
/** While nothing answers, another one is dialled so soon: the first that is answered says when that began. */
const NEXT_MS = 10;

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
let dials = 0;
let latest = 0;
let last = '';

/** An answer to a dial before the latest one that was answered is of the past. */
async function dial(): Promise<void> {
  const number = ++dials;
  const endpoint = await reached(task);
  if (endpoint === '' || number < latest) return;
  latest = number;
  if (endpoint === last) return;
  last = endpoint;
  process.stdout.write(`${JSON.stringify({ at: Date.now(), endpoint } satisfies Reached)}\n`);
}

for (;;) {
  await Promise.race([dial(), sleep(NEXT_MS)]);
  await sleep(PAUSE_MS);
}
