/** A real message bus of our own, and a firewalld that does nothing but what tests need of it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import type { DbusMessage } from '../../../src/system/dbus/codec.ts';
import { BUS, DbusConnection } from '../../../src/system/dbus/connection.ts';
import { FIREWALLD } from '../../../src/system/firewalld.ts';

const daemonWorks = spawnSync('dbus-daemon', ['--version']).status === 0;

/** Skips where there is no dbus-daemon. On CI that is a failure: skipped is untested. */
export function requireDbus(context: Pick<TestContext, 'skip'>): void {
  if (daemonWorks) return;
  const reason = 'dbus-daemon is not installed (Debian package dbus-daemon)';
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}

export class MessageBus {
  readonly directory = mkdtempSync(join(tmpdir(), 'junction-'));
  readonly path = join(this.directory, 'bus');
  #daemon: ChildProcess | undefined;

  async start(): Promise<void> {
    const config = join(this.directory, 'bus.conf');
    writeFileSync(
      config,
      `<busconfig>
        <listen>unix:path=${this.path}</listen>
        <auth>EXTERNAL</auth>
        <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
      </busconfig>`,
    );
    const daemon = spawn('dbus-daemon', [`--config-file=${config}`, '--nofork', '--print-address'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.#daemon = daemon;
    await once(daemon.stdout, 'data');
  }

  async stop(): Promise<void> {
    const daemon = this.#daemon;
    this.#daemon = undefined;
    if (!daemon) return;
    daemon.kill('SIGKILL');
    await once(daemon, 'exit');
    rmSync(this.path, { force: true });
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true });
  }
}

export class FakeFirewalld {
  readonly connection: DbusConnection;
  readonly #zoneQuestions: DbusMessage[] = [];
  #answersAtOnce = true;

  /** Without the name, it is somebody else who sends the same signals. */
  static async start(bus: MessageBus, { named = true, slow = false } = {}): Promise<FakeFirewalld> {
    const waiting: { firewalld?: FakeFirewalld } = {};
    const connection = await DbusConnection.open(bus.path, {
      onMessage: (message) => waiting.firewalld?.onMessage(message),
      onClosed: () => undefined,
    });
    const firewalld = new FakeFirewalld(connection);
    waiting.firewalld = firewalld;
    firewalld.#answersAtOnce = !slow;
    if (named) await firewalld.takeName();
    return firewalld;
  }

  private constructor(connection: DbusConnection) {
    this.connection = connection;
  }

  async takeName(): Promise<void> {
    const args = [FIREWALLD.destination, 0];
    await this.connection.call({ ...BUS, member: 'RequestName', signature: 'su', args });
  }

  get questions(): number {
    return this.#zoneQuestions.length;
  }

  onMessage(message: DbusMessage): void {
    if (message.member !== 'getDefaultZone') return;
    this.#zoneQuestions.push(message);
    if (this.#answersAtOnce) this.answer();
  }

  answer(): void {
    for (const { serial, sender } of this.#zoneQuestions.splice(0)) {
      this.connection.send({
        type: 'return',
        replySerial: serial,
        ...(sender !== undefined && { destination: sender }),
        signature: 's',
        body: ['public'],
      });
    }
  }

  /** To everybody, or to one alone. */
  reloaded(destination?: string): void {
    const { path, interface: from } = FIREWALLD;
    this.connection.send({
      type: 'signal',
      path,
      interface: from,
      member: 'Reloaded',
      ...(destination !== undefined && { destination }),
      body: [],
    });
  }

  stop(): void {
    this.connection.close();
  }
}
