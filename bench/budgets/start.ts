/** How long the program itself takes: to say its version, and to ask an API server for the first time. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeConfig } from '../nftables/proxyProcess.ts';
import type { StartRun, StartTask } from './messages.ts';

const PATIENCE_MS = 60_000;

async function versionMs(program: string): Promise<number> {
  const started = performance.now();
  await once(spawn(process.execPath, [program, '--version'], { stdio: 'ignore' }), 'exit');
  return performance.now() - started;
}

/** Nobody answers it: it is the question that counts. */
async function firstRequestMs(program: string, config: string, server: Server): Promise<number> {
  const asked = once(server, 'connection', { signal: AbortSignal.timeout(PATIENCE_MS) });
  const started = performance.now();
  const own = ['--api-socket=', '--config', config];
  const daemon = spawn(process.execPath, [program, 'run', ...own], { stdio: 'ignore' });
  await asked;
  const elapsed = performance.now() - started;
  await killed(daemon);
  return elapsed;
}

async function killed(daemon: ChildProcess): Promise<void> {
  const exited = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await exited;
}

async function main({ programs, repetitions }: StartTask): Promise<StartRun> {
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  const server = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const config = writeConfig(folder, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const runs = programs.map((program) => ({ program, version: [] as number[], first: [] as number[] }));
  for (let repetition = 0; repetition < repetitions; repetition++)
    for (const { program, version, first } of runs) {
      version.push(await versionMs(program));
      first.push(await firstRequestMs(program, config, server));
    }
  rmSync(folder, { recursive: true });
  return runs.map(({ version, first }) => ({ versionMs: version, firstRequestMs: first }));
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as StartTask))}\n`);
process.exit();
