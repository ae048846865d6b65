/** A daemon that keeps a record of what it wrote, and what others may do to it while nobody runs. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from '../../../lab/host.ts';
import { manifests, type ServiceWords } from '../cluster.ts';
import { Daemon } from '../daemon.ts';
import { eventually } from './eventually.ts';

export const WEB: ServiceWords = {
  name: 'web',
  ip: '10.96.0.1',
  ip6: 'fd00:96::1',
  nodePort: 30_080,
  pods: 'abc',
};
const STICKY: ServiceWords = {
  name: 'sticky',
  ip: '10.96.0.2',
  extra: '  sessionAffinity: ClientIP',
  pods: 'ac',
};
export const OTHERS: readonly ServiceWords[] = Array.from({ length: 50 }, (_, index) => ({
  name: `service-${index}`,
  ip: `10.98.0.${index}`,
  pods: ['a', 'bc', 'abcd'][index % 3] ?? '',
}));
const ALL = [WEB, STICKY, ...OTHERS];
/** One is gone, one is new, one has other endpoints. */
export const LATER = [
  { ...WEB, pods: 'bd' },
  { name: 'new', ip: '10.96.0.9', pods: 'a' },
  ...OTHERS.slice(1),
];

export interface RecordedMode {
  readonly flags: readonly string[];
  /** The end of a record that is complete. */
  readonly complete: RegExp;
  /** Our tables as text, without what differs from one moment to the next. */
  ourTables(node: Host): Promise<string>;
  deleteTables(node: Host): Promise<unknown>;
}

/** What others do while nobody runs, and whether the record is used all the same. */
export type Meanwhile = readonly [what: string, isUsed: boolean, act: () => Promise<unknown>];

const KILLS = 5;

export const FROM_RECORD = /from the record[^\n]* ipFamily="IPv4"/;

export class RecordedDaemon {
  readonly directory: string;
  readonly file: string;
  readonly #daemon: Daemon;
  readonly #node: Host;
  readonly #mode: RecordedMode;
  #services: readonly ServiceWords[] = [];
  #isRunning = false;
  #fresh = '';

  static async create(node: Host, mode: RecordedMode): Promise<RecordedDaemon> {
    const directory = await mkdtemp(join(tmpdir(), 'junction-record-'));
    await chmod(directory, 0o755);
    const more = ['--iptables-sync-period=60s', `--state-dir=${directory}`];
    const daemon = await Daemon.create(node, ...mode.flags, ...more);
    const recorded = new RecordedDaemon(node, mode, daemon, directory);
    recorded.#fresh = await recorded.freshTables(ALL);
    return recorded;
  }

  private constructor(node: Host, mode: RecordedMode, daemon: Daemon, directory: string) {
    this.#node = node;
    this.#mode = mode;
    this.#daemon = daemon;
    this.directory = directory;
    this.file = join(directory, 'written.bin');
  }

  /** Of all services, as a fresh start makes them. */
  get fresh(): string {
    return this.#fresh;
  }

  get lastStart(): string {
    const { log } = this.#daemon;
    return log.slice(log.lastIndexOf('"Starting Junction"'));
  }

  async write(services: readonly ServiceWords[]): Promise<void> {
    this.#services = services;
    await this.#daemon.write(manifests(services));
  }

  async start(): Promise<void> {
    await this.#daemon.start();
    this.#isRunning = true;
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#isRunning = false;
    await this.#daemon.end(signal);
  }

  /** The record is complete, and its generation stays. */
  async isRecorded(): Promise<void> {
    let last = '';
    await eventually('the record is complete', async () => {
      const before = last;
      last = await this.#end();
      if (last !== '') await sleep(200);
      return last !== '' && last === before;
    });
  }

  /** Empty unless the record is complete. */
  async #end(): Promise<string> {
    const bytes = await readFile(this.file).catch(() => Buffer.alloc(0));
    const [end = ''] = this.#mode.complete.exec(bytes.subarray(-40).toString('latin1')) ?? [];
    return end;
  }

  /** With a record that holds. On a busy machine the next sync may begin between our look and the signal. */
  async killSettled(): Promise<void> {
    for (let tries = 0; tries < KILLS; tries++) {
      await this.settled();
      await this.end('SIGKILL');
      if ((await this.#end()) !== '') return;
    }
    throw new Error(`killed ${KILLS} times, and each time its record was not complete`);
  }

  /** Each test begins with a record that holds: of who runs, where that has one of all services, or of a fresh start. */
  async settled(): Promise<void> {
    const isStarted = this.#isRunning && this.#services === ALL && FROM_RECORD.test(this.lastStart);
    if (!isStarted) await this.#startWithoutRecord(ALL);
    await this.isRecorded();
  }

  /** What a start without a record makes of an empty kernel. */
  async freshTables(services: readonly ServiceWords[]): Promise<string> {
    await this.end('SIGKILL');
    await this.#mode.deleteTables(this.#node);
    await this.#startWithoutRecord(services);
    return this.#mode.ourTables(this.#node);
  }

  async #startWithoutRecord(services: readonly ServiceWords[]): Promise<void> {
    await this.end('SIGKILL');
    await rm(this.file, { force: true });
    await this.write(services);
    await this.start();
  }

  /** In the end, and nothing else is written after that. */
  async becomes(wanted: string): Promise<void> {
    let tables = '';
    await eventually(
      () => `the table is\n${tables}\nand not\n${wanted}\n${this.lastStart}`,
      async () => (tables = await this.#mode.ourTables(this.#node)) === wanted,
    );
  }

  /** As an older version does, which knows nothing of a record. */
  async runWithout(): Promise<void> {
    const other = await Daemon.create(this.#node, ...this.#mode.flags);
    await other.write(manifests(LATER));
    await other.start();
    await other.close();
  }

  async changeByte(): Promise<void> {
    const bytes = await readFile(this.file);
    const at = bytes.indexOf('shop/web');
    bytes[at + 40] = (bytes[at + 40] ?? 0) ^ 1;
    await writeFile(this.file, bytes);
  }

  async close(): Promise<void> {
    await this.#daemon.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}
