/** The demo that the build made, in a folder that any user can read, with processes that can be found again. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { vi } from 'vitest';
import { attempt } from '../../../src/errors.ts';
import manifest from '../../../package.json' with { type: 'json' };
import { ROOT } from '../../support/checkout.ts';

/** koffi's binary is a package of its own. */
const PACKAGES = [...Object.keys(manifest.dependencies), '@koromix'];

export interface BuiltDemo {
  readonly folder: string;
  readonly examples: string;
  remove(): void;
}

export function copyDemo(): BuiltDemo {
  const folder = mkdtempSync(join(tmpdir(), 'junction-demo-'));
  chmodSync(folder, 0o755);
  for (const path of [
    'package.json',
    'bin',
    'examples',
    ...['demo.js', 'junction.js', 'junction', 'lab-agent.js', 'page'].map((name) => `dist/${name}`),
    ...PACKAGES.map((name) => `node_modules/${name}`),
  ]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
  return {
    folder,
    examples: join(folder, 'examples'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export const AS_NOBODY = [
  'setpriv',
  '--reuid=65534',
  '--regid=65534',
  '--clear-groups',
  '--inh-caps=-all',
  '--',
];

/** A demo that runs. */
export class RunningDemo {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly exited: Promise<number | NodeJS.Signals | null>;
  readonly #mark = `JUNCTION_DEMO_MARK=${randomUUID()}`;
  #output = '';

  /** The built program by itself. */
  static start(
    { folder }: BuiltDemo,
    args: readonly string[],
    prefix: readonly string[] = [],
    env: NodeJS.ProcessEnv = {},
  ): RunningDemo {
    return new RunningDemo([...prefix, process.execPath, join(folder, 'dist/demo.js'), ...args], folder, env);
  }

  /** Whatever leads to a demo. */
  constructor([command = '', ...args]: readonly string[], folder: string, env: NodeJS.ProcessEnv = {}) {
    const [name = '', value] = this.#mark.split('=');
    this.child = spawn(command, args, {
      cwd: folder,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: folder, ...env, [name]: value },
    });
    const add = (chunk: Buffer): void => {
      this.#output += chunk.toString();
    };
    this.child.stdout.on('data', add);
    this.child.stderr.on('data', add);
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code, signal) => resolve(code ?? signal));
    });
  }

  get output(): string {
    return this.#output;
  }

  /** The demo's processes: all that it started have its environment. */
  processes(): readonly number[] {
    return allProcesses().filter((pid) => environmentOf(pid).includes(this.#mark));
  }

  /** Of these, the one whose command line matches. */
  processOf(command: RegExp): number | undefined {
    return this.processes().find((pid) => command.test(commandOf(pid)));
  }

  /** Of the lab's hosts. */
  labNetworks(): ReadonlySet<string> {
    const networks = this.processes().map(networkOf);
    return new Set(networks.filter((network) => network !== '' && network !== OWN_NETWORK));
  }

  /** Of the page: the first thing that it says. */
  get link(): string {
    return /^The page: (http:\/\/127\.0\.0\.1:\d+\/)/.exec(this.#output)?.[1] ?? '';
  }

  async saying(text: RegExp, from = 0): Promise<void> {
    await vi.waitFor(
      () => {
        if (!text.test(this.#output.slice(from))) throw new Error(`no ${text} in:\n${this.#output}`);
      },
      { timeout: 200_000, interval: 20 },
    );
  }
}

export function processesIn(networks: ReadonlySet<string>): readonly number[] {
  return allProcesses().filter((pid) => networks.has(networkOf(pid)));
}

const OWN_NETWORK = networkOf(process.pid);

function allProcesses(): readonly number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

function environmentOf(pid: number): readonly string[] {
  return ofProcess(() => readFileSync(`/proc/${pid}/environ`, 'utf8')).split('\0');
}

function commandOf(pid: number): string {
  return ofProcess(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim());
}

function networkOf(pid: number): string {
  return ofProcess(() => readlinkSync(`/proc/${pid}/ns/net`));
}

/** Empty where it ended while we looked, or is not ours to see. */
function ofProcess(read: () => string): string {
  return attempt(read) ?? '';
}
