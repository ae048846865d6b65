/**
 * A whole Linux of our own, as a process: User-mode Linux from Debian's package user-mode-linux. It has what the
 * kernels of many machines lack: IPVS, dummy devices, every module of ipset. It boots in a second or two.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'vitest';
import { bundle } from '../../kernel/support/bundle.ts';
import { initScript } from './init.ts';
import { Tail } from './tail.ts';

const ROOT = join(import.meta.dirname, '../../..');
const PROGRAM = 'linux.uml';
const MODULES_FOLDER = '/usr/lib/uml/modules';
/** Sparse: only what the guest touches is ever taken. */
const MEMORY = '1G';
const CONSOLE_LINES = 40;
/**
 * Every process of the guest is one of the host's, in a group that the machine makes for itself. All of it is ended with
 * the machine, or when this process closes the standard input or is gone, however it went.
 */
const KEEPER = `exec 3<&0
"$@" < /dev/null 3<&- & machine=$!
{ cat <&3; kill -KILL -$machine; } > /dev/null 2>&1 &
wait $machine
kill -KILL -$machine 2> /dev/null
kill -KILL 0`;

export interface GuestOptions {
  /** Boot included. */
  readonly timeoutMs?: number;
  /** To be loaded first; one that is missing fails the run. */
  readonly modules?: readonly string[];
  /** Of the script. */
  readonly arguments?: readonly string[];
  /** Hears each line of the script's output when it is written. */
  readonly onLine?: (line: string) => void;
}

export interface GuestResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Skips where there is no User-mode Linux, or one of the host's programs that run in it is missing. On CI that is a
 * failure: skipped is untested.
 */
export function requireGuest(context: Pick<TestContext, 'skip'>, programs: readonly string[] = []): void {
  const reason = whyNoGuest(programs);
  if (reason === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}

/** `undefined` where one can run. */
export function whyNoGuest(programs: readonly string[] = []): string | undefined {
  if (process.arch !== 'x64') return `User-mode Linux runs on x64 alone, and this is ${process.arch}`;
  if (!isInstalled(PROGRAM) || !existsSync(MODULES_FOLDER))
    return 'User-mode Linux is not installed (Debian package user-mode-linux)';
  const missing = programs.filter((program) => !isInstalled(program));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`;
}

function isInstalled(program: string): boolean {
  // Where programs for the administrator are, which not every user's PATH has.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => existsSync(join(folder, program)));
}

/** What the source, run with Node inside, prints as JSON. Fails when it ends otherwise than well. */
export async function jsonFromGuest(
  name: string,
  source: string,
  options: GuestOptions = {},
): Promise<unknown> {
  const { code, stdout, stderr } = await runSourceInGuest(name, source, options);
  if (code !== 0 || stderr !== '')
    throw new Error(`the script ${name} ended with ${code} in the guest\n${stderr}`);
  return JSON.parse(stdout);
}

/** Bundles the source, whose imports start at the project, and runs it with Node inside. */
export async function runSourceInGuest(
  name: string,
  source: string,
  options: GuestOptions = {},
): Promise<GuestResult> {
  const script = await bundle(name, source);
  try {
    return await runInGuest(script, options);
  } finally {
    await rm(script);
  }
}

/** Runs a script with Node in a machine that is booted for it alone. Fails, with its console, when that does. */
export async function runInGuest(script: string, options: GuestOptions = {}): Promise<GuestResult> {
  const { timeoutMs = 600_000, modules = [], onLine = () => {} } = options;
  const folder = await mkdtemp(join(tmpdir(), 'junction-uml-'));
  try {
    const outputFolder = join(folder, 'output');
    await mkdir(outputFolder);
    const init = join(folder, 'init');
    const text = initScript({
      argv: [process.execPath, script, ...(options.arguments ?? [])],
      cwd: ROOT,
      modules,
      outputFolder,
      modulesFolder: MODULES_FOLDER,
    });
    await writeFile(init, text, { mode: 0o755 });
    const tail = new Tail(join(outputFolder, 'stdout'), onLine);
    const { console, ended } = await boot(folder, init, timeoutMs);
    tail.stop();
    const [code, stdout, stderr] = await Promise.all(
      ['code', 'stdout', 'stderr'].map((name) => readFile(join(outputFolder, name), 'utf8').catch(() => '')),
    );
    if (ended !== 'off' || !/^\d+\n$/.test(code ?? ''))
      throw new Error(complaint(ended, timeoutMs, { console, stdout, stderr }));
    return { code: Number(code), stdout: stdout ?? '', stderr: stderr ?? '' };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Boot {
  readonly console: string;
  readonly ended: 'off' | 'killed';
}

function boot(folder: string, init: string, timeoutMs: number): Promise<Boot> {
  const machine = [`mem=${MEMORY}`, `uml_dir=${folder}`, 'con=null', 'con0=null,fd:1'];
  const root = ['root=/dev/root', 'rootfstype=hostfs', 'rootflags=/', 'ro', `init=${init}`];
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', KEEPER, 'sh', PROGRAM, ...machine, ...root], {
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: tmpdir() },
    });
    let console = '';
    let ended: Boot['ended'] = 'off';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (console += text));
    const timer = setTimeout(() => {
      ended = 'killed';
      child.stdin.end();
    }, timeoutMs);
    child.once('close', () => {
      clearTimeout(timer);
      resolve({ console, ended });
    });
  });
}

function complaint(
  ended: Boot['ended'],
  timeoutMs: number,
  texts: {
    readonly console: string;
    readonly stdout?: string | undefined;
    readonly stderr?: string | undefined;
  },
): string {
  const what = {
    off: 'the guest ended before the script did',
    killed: `the guest was still running after ${timeoutMs} ms, and was ended`,
  };
  const parts = Object.entries(texts).flatMap(([name, text]) =>
    text ? [`--- ${name}\n${text.trimEnd().split('\n').slice(-CONSOLE_LINES).join('\n')}`] : [],
  );
  return [what[ended], ...parts].join('\n');
}
