/**
 * The program inside the guest. Without a task it runs itself, once for each measurement, in a network namespace that
 * is made for it; with one, it does that measurement. What it prints is one line of JSON for each.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { run } from '../../src/system/processes.ts';
import type { GuestRun } from './messages.ts';
import { measureOurs } from './ours.ts';
import { measureTools } from './tools.ts';

const [task, ...numbers] = process.argv.slice(2);
const MEASUREMENTS = { own: measureOurs, tools: measureTools } as const;
/** The kernel takes a namespace apart after its last process, and that takes time which is nobody's. */
const REST_MS = 2000;
const WARM_UP_SERVICES = 10;

async function main(): Promise<void> {
  const [first = 0, endpoints = 0, ...others] = numbers.map(Number);
  if (task === 'own' || task === 'tools') {
    // Without any address of its own, a namespace has no idea of which addresses are other machines'.
    await run(['ip', 'link', 'set', 'lo', 'up']);
    say(await MEASUREMENTS[task]({ services: first, endpoints }));
    return;
  }
  // The kernel loads its modules, and the machine reads its programs' files, when they are first needed.
  for (const each of Object.keys(MEASUREMENTS)) await inNamespace(each, WARM_UP_SERVICES, endpoints);
  for (let repetition = 0; repetition < first; repetition++)
    for (const services of others)
      for (const each of Object.keys(MEASUREMENTS))
        process.stdout.write(await inNamespace(each, services, endpoints));
}

async function inNamespace(each: string, services: number, endpoints: number): Promise<string> {
  const program = [process.execPath, fileURLToPath(import.meta.url), each, `${services}`, `${endpoints}`];
  const { code, stdout, stderr } = await run(['unshare', '--net', ...program]);
  if (code !== 0) throw new Error(`${each} with ${services} services ended with ${code}: ${stderr}`);
  await sleep(REST_MS);
  return stdout;
}

function say(result: GuestRun): void {
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

await main();
