/**
 * A whole Linux of our own, as a process: User-mode Linux from Debian's package user-mode-linux. It has what the
 * kernels of many machines lack: IPVS, dummy devices, every module of ipset. It boots in a second or two, and needs no
 * root.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled, toolEnvironment } from '../tools.ts';
import { initScript } from './init.ts';
import { onOneProcessor } from './processor.ts';
import { processorEnvironment, whyNotOnThisProcessor } from './processorState.ts';
import { lineByLine, Tail } from './tail.ts';

const PROGRAM = 'linux.uml';
const MODULES_FOLDER = '/usr/lib/uml/modules';
/** Sparse: only what the guest touches is ever taken. */
const MEMORY = '1G';
const CONSOLE_LINES = 40;
/**
 * Every process of the guest is one of the host's, in a group that the machine makes for itself. All of it is ended with
 * the machine, when this process says so, or when this process is gone, however it went; then the folder goes too. A
 * machine that has no group yet has no process besides its first. The shell says that the machine was killed, and by
 * then nobody may be there to read it (SIGPIPE).
 */
const KEEPER = `folder=$1; shift
exec 3<&0
"$@" < /dev/null 3<&- & machine=$!
{ read -r word <&3 || : > "$folder/abandoned"; kill -KILL $machine; kill -KILL -$machine; } > /dev/null 2>&1 &
trap '' PIPE
wait $machine
kill -KILL -$machine 2> /dev/null
[ ! -e "$folder/abandoned" ] || rm -rf -- "$folder"
kill -KILL 0`;

export interface GuestOptions {
  /** Boot included; unset: as long as it takes. */
  readonly timeoutMs?: number;
  /** To be loaded first; one that is missing fails the run. */
  readonly modules?: readonly string[];
  /** Of the script. */
  readonly arguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Ends the machine at once; the run then fails. */
  readonly signal?: AbortSignal;
  /** The kernel is up, and the script begins. */
  readonly onBooted?: (guest: RunningGuest) => void;
  /** Called with each line of the script's output when it is written. */
  readonly onLine?: (line: string) => void;
  /** Called with the script's output when it is written, in pieces of any length. */
  readonly onOutput?: (text: string) => void;
}

export interface RunningGuest {
  /** Adds to the file that the script finds at `GUEST_INPUT`. */
  write(text: string): void;
}

export const GUEST_INPUT = '/run/output/input';

export interface GuestResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `undefined` where one can run, with these of the host's programs in it. */
export function whyNoGuest(programs: readonly string[] = []): string | undefined {
  if (process.arch !== 'x64') return `User-mode Linux runs on x64 alone, and this is ${process.arch}`;
  if (!isInstalled(PROGRAM) || !existsSync(MODULES_FOLDER))
    return 'User-mode Linux is not installed (Debian package user-mode-linux)';
  const whyNot = whyNotOnThisProcessor();
  if (whyNot !== undefined) return whyNot;
  const missing = programs.filter((program) => !isInstalled(program));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`;
}

/** Runs a script with Node in a machine that is booted for it alone. Fails, with its console, when that does. */
export async function runInGuest(script: string, options: GuestOptions = {}): Promise<GuestResult> {
  const folder = await mkdtemp(join(tmpdir(), 'junction-uml-'));
  try {
    const outputFolder = join(folder, 'output');
    await mkdir(outputFolder);
    await writeFile(join(outputFolder, 'input'), '');
    const init = join(folder, 'init');
    const text = initScript({
      argv: [process.execPath, script, ...(options.arguments ?? [])],
      environment: options.environment ?? {},
      cwd: options.cwd ?? process.cwd(),
      modules: options.modules ?? [],
      outputFolder,
      modulesFolder: MODULES_FOLDER,
    });
    await writeFile(init, text, { mode: 0o755 });
    const tails = tailOutput(outputFolder, options);
    const { console, ended } = await boot(folder, init, options);
    for (const tail of tails) tail.stop();
    const [code, stdout, stderr] = await Promise.all(
      ['code', 'stdout', 'stderr'].map((name) => readFile(join(outputFolder, name), 'utf8').catch(() => '')),
    );
    if (ended !== 'off' || !/^\d+\n$/.test(code ?? ''))
      throw new Error(complaint(ended, options.timeoutMs, { console, stdout, stderr }));
    return { code: Number(code), stdout: stdout ?? '', stderr: stderr ?? '' };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function tailOutput(folder: string, options: GuestOptions): readonly Tail[] {
  const { onBooted, onLine, onOutput = onLine && lineByLine(onLine) } = options;
  const write = (text: string): void => appendFileSync(join(folder, 'input'), text);
  return [
    ...(onBooted ? [new Tail(join(folder, 'booted'), () => onBooted({ write }))] : []),
    ...(onOutput ? [new Tail(join(folder, 'stdout'), onOutput)] : []),
  ];
}

interface Boot {
  readonly console: string;
  readonly ended: 'off' | 'killed' | 'aborted';
}

function boot(folder: string, init: string, { timeoutMs, signal }: GuestOptions): Promise<Boot> {
  const machine = [PROGRAM, `mem=${MEMORY}`, `uml_dir=${folder}`, 'con=null', 'con0=null,fd:1'];
  const root = ['root=/dev/root', 'rootfstype=hostfs', 'rootflags=/', 'ro', `init=${init}`];
  return new Promise((resolve) => {
    const argv = [...onOneProcessor(PROGRAM), ...machine, ...root];
    const child = spawn('sh', ['-c', KEEPER, 'sh', folder, ...argv], {
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...toolEnvironment(), ...processorEnvironment(folder), TMPDIR: tmpdir() },
    });
    let console = '';
    let ended: Boot['ended'] = 'off';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (console += text));
    child.stdin.on('error', () => {}); // it ended by itself just now
    const end = (how: Boot['ended']): void => {
      ended = how;
      child.stdin.end('end\n');
    };
    const abort = (): void => end('aborted');
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => end('killed'), timeoutMs);
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    child.once('close', () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve({ console, ended });
    });
  });
}

function complaint(
  ended: Boot['ended'],
  timeoutMs: number | undefined,
  texts: {
    readonly console: string;
    readonly stdout?: string | undefined;
    readonly stderr?: string | undefined;
  },
): string {
  const what = {
    off: 'the guest ended before the script did',
    killed: `the guest was still running after ${timeoutMs} ms, and was ended`,
    aborted: 'the guest was ended',
  };
  const parts = Object.entries(texts).flatMap(([name, text]) =>
    text ? [`--- ${name}\n${text.trimEnd().split('\n').slice(-CONSOLE_LINES).join('\n')}`] : [],
  );
  return [what[ended], ...parts].join('\n');
}
