/** Asks /livez all the time, in a process of its own; prints what took how long. */
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const PAUSE_MS = 10;
const PATIENCE_MS = 120_000;

function ask(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { timeout: PATIENCE_MS, agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200));
      response.on('error', () => resolve(false));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
  });
}

const url = process.argv[2] ?? '';
for (;;) {
  const at = Date.now();
  const started = performance.now();
  const answered = await ask(url);
  if (answered) process.stdout.write(`${at} ${(performance.now() - started).toFixed(1)}\n`);
  await sleep(PAUSE_MS);
}
