/** A real message bus of our own, and a firewalld that does nothing but what tests need of it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { type DbusMessage, decodeMessage, encodeMessage } from '../../../src/system/dbusMessage.ts';

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

const BUS = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const;
const FIREWALLD = 'org.fedoraproject.FirewallD1';

/** A program on the bus. */
class Peer {
  readonly #socket: Socket;
  readonly #waiting = new Map<unknown, (body: DbusMessage['body']) => void>();
  #serial = 0;

  constructor(path: string, onCall: (message: DbusMessage) => void) {
    this.#socket = connect({ path });
    let unread: Buffer = Buffer.alloc(0);
    let isAccepted = false;
    this.#socket
      .on('error', () => undefined)
      .on('data', (chunk: Buffer) => {
        unread = Buffer.concat([unread, chunk]);
        const start = unread.indexOf('OK ');
        const end = unread.indexOf('\n', Math.max(0, start));
        if (!isAccepted && (start < 0 || end < 0)) return;
        if (!isAccepted) unread = unread.subarray(end + 1);
        isAccepted = true;
        for (let next = decodeMessage(unread); next; next = decodeMessage(unread)) {
          unread = unread.subarray(next.bytes);
          if (next.message.type === 'call') onCall(next.message);
          else this.#waiting.get(next.message.replySerial)?.(next.message.body);
        }
      });
    this.#socket.write('\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n');
  }

  askBus(member: string, ...body: DbusMessage['body']): Promise<DbusMessage['body']> {
    const serial = this.send({ ...BUS, type: 'call', member, body });
    return new Promise((resolve) => this.#waiting.set(serial, resolve));
  }

  send(message: Omit<Parameters<typeof encodeMessage>[0], 'serial'>): number {
    this.#serial += 1;
    this.#socket.write(encodeMessage({ ...message, serial: this.#serial }));
    return this.#serial;
  }

  close(): void {
    this.#socket.destroy();
  }
}

export class FakeFirewalld {
  readonly peer: Peer;
  readonly #zoneQuestions: DbusMessage[] = [];
  #answersAtOnce = true;

  /** Without the name, it is somebody else who sends the same signals. */
  static async start(bus: MessageBus, { named = true, slow = false } = {}): Promise<FakeFirewalld> {
    const firewalld = new FakeFirewalld(bus.path);
    firewalld.#answersAtOnce = !slow;
    await firewalld.peer.askBus('Hello');
    if (named) await firewalld.takeName();
    return firewalld;
  }

  private constructor(path: string) {
    this.peer = new Peer(path, (message) => this.#onCall(message));
  }

  async takeName(): Promise<void> {
    await this.peer.askBus('RequestName', FIREWALLD, 0);
  }

  get questions(): number {
    return this.#zoneQuestions.length;
  }

  #onCall(message: DbusMessage): void {
    if (message.member !== 'getDefaultZone') return;
    this.#zoneQuestions.push(message);
    if (this.#answersAtOnce) this.answer();
  }

  answer(): void {
    for (const { serial, sender } of this.#zoneQuestions.splice(0))
      this.peer.send({
        type: 'return',
        replySerial: serial,
        ...(sender !== undefined && { destination: sender }),
        body: ['public'],
      });
  }

  /** To everybody, or to one alone. */
  reloaded(destination?: string): void {
    this.peer.send({
      type: 'signal',
      path: '/org/fedoraproject/FirewallD1',
      interface: FIREWALLD,
      member: 'Reloaded',
      ...(destination !== undefined && { destination }),
      body: [],
    });
  }

  stop(): void {
    this.peer.close();
  }
}
