/**
 * Notices when firewalld has flushed our rules: it does so whenever it starts or reloads, and says so on D-Bus.
 *
 * The canary notices the same within a sync period; this notices at once. A machine without firewalld or without D-Bus
 * loses nothing. A client of our own, because a general library brings XML parsers into a process that runs as root.
 */
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';
import { systemClock } from '../time/systemClock.ts';
import { type DbusMessage, decodeMessage, encodeMessage } from './dbusMessage.ts';

const BUS = 'org.freedesktop.DBus';
const FIREWALLD = 'org.fedoraproject.FirewallD1';
const USUAL_BUS = 'unix:path=/run/dbus/system_bus_socket;unix:path=/var/run/dbus/system_bus_socket';
/** Without naming a user: the bus sees who we are, and in a user namespace it sees another number than we do. */
const AUTHENTICATION = '\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n';
const SIGNALS = [
  `type='signal',sender='${BUS}',interface='${BUS}',member='NameOwnerChanged',arg0='${FIREWALLD}'`,
  `type='signal',sender='${FIREWALLD}',interface='${FIREWALLD}',member='Reloaded'`,
];
const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
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
  #isAuthenticated = false;
  #serial = 0;
  /** Of the call whose answer says that a starting firewalld has written its rules. */
  #asked: number | undefined;
  #listeningSince: number | undefined;
  #wasLost = false;
  #retryMs = MIN_RETRY_MS;
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
    const { busAddress = process.env['DBUS_SYSTEM_BUS_ADDRESS'] || USUAL_BUS } = this.#options;
    const socket = connect({ path: socketPath(busAddress) });
    this.#socket = socket;
    this.#unread = Buffer.alloc(0);
    this.#isAuthenticated = false;
    this.#serial = 0;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#lost(error));
    socket.on('close', () => this.#lost(new Error('the bus closed the connection')));
    this.#after(TIMEOUT_MS, () => this.#lost(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    socket.write(AUTHENTICATION);
    const bus = { destination: BUS, path: '/org/freedesktop/DBus', interface: BUS };
    this.#call({ ...bus, member: 'Hello', body: [] });
    for (const rule of SIGNALS) this.#call({ ...bus, member: 'AddMatch', body: [rule] });
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
    const lasted = this.#listeningSince === undefined ? 0 : this.#clock.now() - this.#listeningSince;
    this.#listeningSince = undefined;
    if (lasted > MAX_RETRY_MS) this.#retryMs = MIN_RETRY_MS;
    this.#after(this.#retryMs, () => this.#connect());
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS);
  }

  /** In place of what was waited for before. */
  #after(delayMs: number, act: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.schedule(delayMs, act);
  }

  #call(call: Omit<DbusMessage, 'type' | 'serial'>): number {
    this.#serial += 1;
    this.#socket?.write(encodeMessage({ ...call, type: 'call', serial: this.#serial }));
    return this.#serial;
  }

  #receive(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    try {
      this.#isAuthenticated ||= this.#isAccepted();
      if (!this.#isAuthenticated) return;
      for (let next = decodeMessage(this.#unread); next; next = decodeMessage(this.#unread)) {
        this.#unread = this.#unread.subarray(next.bytes);
        this.#take(next.message);
      }
    } catch (error) {
      this.#lost(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** The bus asks for data, which it has already been sent, and then accepts or rejects. */
  #isAccepted(): boolean {
    const [lines, reply] = /^(?:DATA[^\n]*\n)?((?!DATA)[^\n]+)\n/.exec(this.#unread.toString('latin1')) ?? [];
    if (lines === undefined || reply === undefined) return false;
    if (!reply.startsWith('OK')) throw new Error(`the bus refused us: ${reply.trim()}`);
    this.#unread = this.#unread.subarray(lines.length);
    return true;
  }

  #take(message: DbusMessage): void {
    const { type, replySerial, body } = message;
    if (type === 'signal') this.#takeSignal(message);
    else if (replySerial !== undefined && replySerial === this.#asked) this.#reload('firewalld started');
    else if (type === 'error') throw new Error(`the bus answered ${String(body[0])}`);
    else if (replySerial === 1 + SIGNALS.length) this.#listening();
  }

  #listening(): void {
    this.#cancelTimer();
    this.#options.log.verbose(1, 'Listening for reloads of firewalld');
    this.#listeningSince = this.#clock.now();
    this.#onceTried();
    // What was sent while nobody listened cannot be known.
    if (this.#wasLost) this.#reload('missed signals');
    this.#wasLost = false;
  }

  /** The bus passes on signals of firewalld's alone, but for those that somebody addresses to us by our own name. */
  #takeSignal({ destination, sender, interface: from, member, body }: DbusMessage): void {
    if (destination !== undefined) return;
    if (sender === BUS && member === 'NameOwnerChanged' && body[2] !== '') this.#askStarting();
    else if (from === FIREWALLD && member === 'Reloaded') this.#reload('firewalld reloaded');
  }

  /** A starting firewalld has its name before it has flushed the rules, and answers calls after. */
  #askStarting(): void {
    const path = '/org/fedoraproject/FirewallD1';
    const call = { destination: FIREWALLD, path, interface: FIREWALLD, member: 'getDefaultZone', body: [] };
    this.#asked = this.#call(call);
    this.#after(TIMEOUT_MS, () => this.#reload('firewalld started'));
  }

  #reload(why: string): void {
    if (why === 'firewalld started') {
      this.#cancelTimer();
      this.#asked = undefined;
    }
    this.#options.onReload(why);
  }
}

/** The first socket that is there; of other transports nothing is known. */
function socketPath(address: string): string {
  const entries = [...address.matchAll(/(?:^|;)unix:(?:[^;]*,)?path=([^,;]*)/g)];
  const paths = entries.map(([, path = '']) => decodeURIComponent(path));
  return paths.find((path) => existsSync(path)) ?? paths[0] ?? '/nonexistent';
}
