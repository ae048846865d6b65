/** `npm start` as people start it, and everything above it that can die without a word. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { requireLab } from '../requireLab.ts';
import { processesIn, RunningDemo } from './program.ts';

const ROOT = join(import.meta.dirname, '../../..');

beforeEach((context) => requireLab(context));

test.each([
  ['npm is killed', /^npm start|npm-cli\.js start/, 'SIGKILL'],
  ['npm is asked to end', /^npm start|npm-cli\.js start/, 'SIGTERM'],
  ['the shell that npm started is killed', /^\S*sh -c node scripts\/start\.mjs/, 'SIGKILL'],
  ['the shell that started npm is killed', /^\S*sh -c npm start; true/, 'SIGKILL'],
] as const)('%s: the lab goes', async (_, command, signal) => {
  const demo = startByNpm();
  await demo.saying(/Ctrl-C: end/);
  const networks = demo.labNetworks();
  expect(networks.size).toBe(7);
  const victim = demo.processOf(command);
  expect(victim).toBeDefined();
  process.kill(victim ?? 0, signal);
  await expect
    .poll(() => [...demo.processes(), ...processesIn(networks)], { timeout: 150_000, interval: 50 })
    .toEqual([]);
});

/** Its standard input is a pipe: were it /dev/null, npm would count as put into the background. */
function startByNpm(): RunningDemo {
  const home = mkdtempSync(join(tmpdir(), 'junction-npm-'));
  const demo = new RunningDemo(['sh', '-c', 'npm start; true'], ROOT, { HOME: home });
  onTestFinished(() => {
    for (const pid of demo.processes()) killIfThere(pid);
    rmSync(home, { recursive: true, force: true });
  });
  return demo;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it ended by itself just now
  }
}
