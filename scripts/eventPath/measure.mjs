// Runs Junction in one mode beside a small API server, changes an EndpointSlice, and prints which functions of which source files ran.
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '../..');
/** Until the work of the start, or of the change before, is over. */
const SETTLE_MS = 4000;
/** From the log line about the write to the end of what belongs to it. */
const AFTER_MS = 150;

const [mode, apiServer] = process.argv.slice(2);
spawnSync('ip', ['link', 'set', 'lo', 'up'], { stdio: 'inherit' });

const server = spawn(process.execPath, [apiServer], { stdio: ['pipe', 'pipe', 'inherit'], cwd: ROOT });
const url = await new Promise((resolve) => createInterface({ input: server.stdout }).once('line', resolve));
const args = [
  '--require',
  join(ROOT, 'scripts/eventPath/recorder.cjs'),
  join(ROOT, 'dist/junction.js'),
  'run',
  `--proxy-mode=${mode}`,
  `--master=${url}`,
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16',
  '--api-socket=',
  '--v=1',
];
// The guest's kernel has no other.
if (mode === 'ipvs') args.push('--iptables-variant=legacy');
const junction = spawn(process.execPath, args, {
  stdio: ['ignore', 'inherit', 'pipe'],
});
let said = [];
createInterface({ input: junction.stderr }).on('line', (line) => said.push(line));

async function says(pattern) {
  while (!said.some((line) => pattern.test(line))) {
    if (junction.exitCode !== null) throw new Error(`Junction ended:\n${said.join('\n')}`);
    await sleep(20);
  }
}

async function change(pods) {
  said = [];
  server.stdin.write(`${pods}\n`);
  await says(/"Synced rules" ipFamily="IPv4".*EndpointSlice/);
  await sleep(AFTER_MS);
}

await says(/"Serving" ipFamily="IPv4"/);
await sleep(SETTLE_MS);
// The first change opens what is opened late; the second is measured.
await change('acd');
await sleep(SETTLE_MS);
junction.kill('SIGUSR2');
await sleep(200);
await change('ac');
junction.kill('SIGUSR2');
await sleep(3000);
const ran = new Map();
for (const line of said.filter((each) => each.startsWith('RAN ')))
  for (const [file, names] of Object.entries(JSON.parse(line.slice('RAN '.length))))
    ran.set(file, new Set([...(ran.get(file) ?? []), ...names.filter((name) => name !== '')]));
const lines = [...ran].sort().map(([file, names]) => `${file}: ${[...names].join(', ')}`);
console.log([`${mode}: ${lines.length} files`, ...lines, ''].join('\n'));
junction.kill('SIGTERM');
server.stdin.end();
await new Promise((resolve) => junction.once('exit', resolve));
process.exit();
