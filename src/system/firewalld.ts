/**
 * Notices when firewalld has flushed our rules: it does so whenever it starts or reloads, and says so on D-Bus.
 *
 * The canary notices the same within a sync period; this notices at once. A machine without firewalld or without D-Bus
 * loses nothing. A client of our own, because a general library brings XML parsers into a process that runs as root.
 */
import { connect, type Socket } from 'node:net';
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';
import { systemClock } from '../time/systemClock.ts';
import { type DbusMessage, decodeMessage, encodeMessage } from './dbusMessage.ts';

const BUS = 'org.freedesktop.DBus';
const FIREWALLD = 'org.fedoraproject.FirewallD1';
const USUAL_BUS = 'unix:path=/run/dbus/system_bus_socket';
/** Without a user: the bus sees who we are, and in a user namespace it sees another number than we do. */
const AUTHENTICATION = '\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n';
/** The bus asks for data, which it has already been sent, and then accepts or rejects. */
const REPLY = /^(?:DATA[^\n]*\n)?((?!DATA)[^\n]+)\n/;
const SIGNALS = [
  `type='signal',sender='${BUS}',interface='${BUS}',member='NameOwnerChanged',arg0='${FIREWALLD}'`,
  `type='signal',sender='${FIREWALLD}',interface='${FIREWALLD}',member='Reloaded'`,
];
const RETRY_MS = 10_000;
const TIMEOUT_MS = 25_000;

interface FirewalldOptions {
  /** Our rules are deleted, or may be: everything is to be written again. */
  readonly onReload: (why: string) => void;
  readonly log: Pick<Log, 'verbose'>;
  /** In the form of DBUS_SYSTEM_BUS_ADDRESS, which counts unless this is given. */
  readonly busAddress?: string | undefined;
  readonly clock?: Clock | undefined;
}

export class FirewalldListener {
  readonly #options: FirewalldOptions;
  readonly #clock: Clock;
  #socket: Socket | undefined;
  #unread: Buffer = Buffer.alloc(0);
  #isAccepted = false;
  #serial = 0;
  /** Serial of the call whose answer says that a starting firewalld has written its rules. */
  #asked: number | undefined;
  #wasLost = false;
  #cancelTimer = (): void => undefined;
  #onceTried = (): void => undefined;

  constructor(options: FirewalldOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Resolves when the bus has been looked for once. */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#onceTried = resolve;
      this.#connect();
    });
  }

  #connect(): void {
    const address = this.#options.busAddress ?? process.env['DBUS_SYSTEM_BUS_ADDRESS'] ?? '';
    const [, path = ''] = /(?:^|;)unix:(?:[^;]*,)?path=([^,;]*)/.exec(address || USUAL_BUS) ?? [];
    const socket = connect({ path: decodeURIComponent(path) || '/nonexistent' });
    this.#socket = socket;
    this.#unread = Buffer.alloc(0);
    this.#isAccepted = false;
    this.#serial = 0;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#lost(error));
    socket.on('close', () => this.#lost(new Error('the bus closed the connection')));
    this.#after(TIMEOUT_MS, () => this.#lost(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    socket.write(AUTHENTICATION);
    this.#call(BUS, '/org/freedesktop/DBus', 'Hello');
    for (const rule of SIGNALS) this.#call(BUS, '/org/freedesktop/DBus', 'AddMatch', rule);
  }

  stop(): void {
    this.#cancelTimer();
    this.#socket?.removeAllListeners().on('error', () => undefined);
    this.#socket?.destroy();
    this.#asked = undefined;
    this.#onceTried();
  }

  #lost(err: Error): void {
    this.stop();
    const consequence = 'a reload of firewalld is noticed by the periodic checks only';
    if (!this.#wasLost) this.#options.log.verbose(1, 'No D-Bus system bus', { err, consequence });
    this.#wasLost = true;
    this.#after(RETRY_MS, () => this.#connect());
  }

  /** In place of what was waited for before. */
  #after(delayMs: number, act: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(delayMs, act);
  }

  #call(name: string, path: string, member: string, ...body: readonly string[]): number {
    this.#serial += 1;
    const names = { destination: name, path, interface: name, member };
    this.#socket?.write(encodeMessage({ type: 'call', serial: this.#serial, ...names, body }));
    return this.#serial;
  }

  #receive(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    try {
      if (!this.#isAccepted) {
        const [lines, reply] = REPLY.exec(this.#unread.toString('latin1')) ?? [];
        if (lines === undefined || reply === undefined) return;
        if (!reply.startsWith('OK')) throw new Error(`the bus refused us: ${reply.trim()}`);
        this.#isAccepted = true;
        this.#unread = this.#unread.subarray(lines.length);
      }
      for (let next = decodeMessage(this.#unread); next; next = decodeMessage(this.#unread)) {
        this.#unread = this.#unread.subarray(next.bytes);
        this.#take(next.message);
      }
    } catch (error) {
      this.#lost(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #take(message: DbusMessage): void {
    const { type, replySerial, body } = message;
    if (type === 'signal') this.#takeSignal(message);
    else if (replySerial !== undefined && replySerial === this.#asked) this.#hasStarted();
    else if (type === 'error') throw new Error(`the bus answered ${String(body[0])}`);
    else if (replySerial === 1 + SIGNALS.length) this.#listening();
  }

  #listening(): void {
    this.#cancelTimer();
    this.#options.log.verbose(1, 'Listening for reloads of firewalld');
    this.#onceTried();
    // What was sent while the bus was lost cannot be known.
    if (this.#wasLost) this.#options.onReload('missed signals');
    this.#wasLost = false;
  }

  /** The bus passes on only signals of firewalld, and those that a program sends to our own name. */
  #takeSignal({ destination, sender, interface: from, member, body }: DbusMessage): void {
    if (destination !== undefined) return;
    if (from === FIREWALLD && member === 'Reloaded') this.#options.onReload('firewalld reloaded');
    if (sender !== BUS || member !== 'NameOwnerChanged' || body[2] === '') return;
    // A starting firewalld has its name before it has flushed the rules, and answers calls after.
    this.#asked = this.#call(FIREWALLD, '/org/fedoraproject/FirewallD1', 'getDefaultZone');
    this.#after(TIMEOUT_MS, () => this.#hasStarted());
  }

  #hasStarted(): void {
    this.#cancelTimer();
    this.#asked = undefined;
    this.#options.onReload('firewalld started');
  }
}
