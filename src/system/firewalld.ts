/**
 * Notices when firewalld has flushed our rules: it does so whenever it starts or reloads.
 *
 * The canary notices the same within a sync period; this notices at once. A machine without firewalld or without
 * D-Bus loses nothing.
 */
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';
import { systemClock } from '../time/systemClock.ts';
import { systemBusPaths, BUS, DbusConnection, DbusError } from './dbus/connection.ts';
import type { DbusMessage } from './dbus/codec.ts';

export const FIREWALLD = {
  destination: 'org.fedoraproject.FirewallD1',
  path: '/org/fedoraproject/FirewallD1',
  interface: 'org.fedoraproject.FirewallD1',
} as const;

const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 60_000;

type FirewalldState =
  | 'stopped'
  | 'connecting'
  /** There is no bus; it is looked for now and then. */
  | 'absent'
  | 'listening';

interface FirewalldOptions {
  /** Our rules are deleted, or may be: everything is to be written again. */
  readonly onReload: (why: string) => void;
  readonly log: Pick<Log, 'info' | 'verbose'>;
  /** Where the bus may listen; else what the environment says, or the usual places. */
  readonly busPaths?: readonly string[] | undefined;
  readonly clock?: Clock | undefined;
}

export class FirewalldListener {
  readonly #options: FirewalldOptions;
  readonly #clock: Clock;
  state: FirewalldState = 'stopped';
  #connection: DbusConnection | undefined;
  #retryMs = FIRST_RETRY_MS;
  #cancelRetry: (() => void) | undefined;
  #loggedAbsent = false;
  /** What was missed while nobody listened cannot be known. */
  #missedSignals = false;
  /** The unique name of firewalld's own connection. */
  #owner: string | undefined;
  /** Of this start: what still runs for an earlier one is void. */
  #life = 0;

  constructor(options: FirewalldOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Resolves after the first attempt, also when it has failed. */
  async start(): Promise<void> {
    if (this.state !== 'stopped') return;
    this.#missedSignals = false;
    this.#retryMs = FIRST_RETRY_MS;
    await this.#connect(++this.#life);
  }

  stop(): void {
    this.#life += 1;
    this.state = 'stopped';
    this.#cancelRetry?.();
    this.#connection?.close();
    this.#connection = undefined;
    this.#owner = undefined;
  }

  async #connect(life: number): Promise<void> {
    this.state = 'connecting';
    try {
      const connection = await this.#open(life);
      if (life !== this.#life) {
        connection.close();
        return;
      }
      this.#connection = connection;
      await this.#subscribe(connection);
      if (connection.closed) throw connection.closed;
    } catch (error) {
      if (life === this.#life) this.#retry(life, error);
      return;
    }
    if (life !== this.#life) return;
    this.state = 'listening';
    this.#retryMs = FIRST_RETRY_MS;
    this.#loggedAbsent = false;
    this.#options.log.verbose(1, 'Listening for reloads of firewalld', {
      running: this.#owner !== undefined,
    });
    if (this.#missedSignals && this.#owner !== undefined) await this.#reloadWhenReady('missed signals', life);
    this.#missedSignals = false;
  }

  async #open(life: number): Promise<DbusConnection> {
    let failure: unknown = new Error('DBUS_SYSTEM_BUS_ADDRESS names no unix socket');
    for (const path of this.#options.busPaths ?? systemBusPaths()) {
      try {
        return await DbusConnection.open(path, {
          onMessage: (message) => {
            if (life === this.#life) this.#onMessage(message, life);
          },
          onClosed: (reason) => {
            if (life === this.#life && this.state === 'listening') this.#retry(life, reason);
          },
        });
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  /** The owner before its signals: a signal counts only if the owner sent it. */
  async #subscribe(connection: DbusConnection): Promise<void> {
    const addMatch = (rule: string): Promise<unknown> =>
      connection.call({ ...BUS, member: 'AddMatch', signature: 's', args: [rule] });
    await addMatch(
      `type='signal',sender='${BUS.destination}',path='${BUS.path}',interface='${BUS.interface}',member='NameOwnerChanged',arg0='${FIREWALLD.destination}'`,
    );
    const owner = await ownerOf(connection, FIREWALLD.destination);
    this.#owner ??= owner; // not over what a signal has said since
    await addMatch(
      `type='signal',sender='${FIREWALLD.destination}',path='${FIREWALLD.path}',interface='${FIREWALLD.interface}',member='Reloaded'`,
    );
  }

  /** Anybody may send us a signal by our own name, so what it says of itself is not enough. */
  #onMessage(message: DbusMessage, life: number): void {
    if (message.type !== 'signal') return;
    const { sender, interface: from, member, body } = message;
    if (sender === BUS.destination && member === 'NameOwnerChanged' && body[0] === FIREWALLD.destination) {
      const owner = String(body[2] ?? '');
      this.#owner = owner === '' ? undefined : owner;
      if (this.#owner !== undefined) void this.#reloadWhenReady('firewalld started', life);
    } else if (sender === this.#owner && from === FIREWALLD.interface && member === 'Reloaded') {
      this.#reload('firewalld reloaded');
    }
  }

  /** A starting firewalld has its name before it has flushed the rules, and answers calls after. */
  async #reloadWhenReady(why: string, life: number): Promise<void> {
    try {
      await this.#connection?.call({ ...FIREWALLD, member: 'getDefaultZone' });
    } catch {
      // Whatever the answer: it has come, or has taken too long to wait for.
    }
    if (life === this.#life) this.#reload(why);
  }

  #reload(why: string): void {
    this.#options.log.info('Writing all rules again, because firewalld may have removed them', { why });
    this.#options.onReload(why);
  }

  #retry(life: number, error: unknown): void {
    if (this.state === 'listening') {
      this.#options.log.verbose(1, 'Lost the D-Bus system bus; connecting again', { err: error });
    } else if (!this.#loggedAbsent) {
      this.#loggedAbsent = true;
      this.#options.log.verbose(1, 'Could not connect to D-Bus system bus', {
        err: error,
        consequence: 'a reload of firewalld is noticed by the periodic checks only',
      });
    }
    this.#connection?.close();
    this.#connection = undefined;
    this.#owner = undefined;
    this.#missedSignals = true;
    this.state = 'absent';
    this.#cancelRetry = this.#clock.schedule(this.#retryMs, () => void this.#connect(life));
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }
}

async function ownerOf(connection: DbusConnection, name: string): Promise<string | undefined> {
  try {
    const [owner] = await connection.call({ ...BUS, member: 'GetNameOwner', signature: 's', args: [name] });
    return typeof owner === 'string' ? owner : undefined;
  } catch (error) {
    if (error instanceof DbusError) return undefined; // nobody has the name
    throw error;
  }
}
