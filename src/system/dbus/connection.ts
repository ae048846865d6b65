/**
 * One connection to a D-Bus message bus: calls, and whatever else the bus sends.
 *
 * A client of our own, because a listener for two signals is all that is needed of D-Bus, and a general library
 * brings XML parsers along into a process that runs as root on every node.
 */
import { connect, type Socket } from 'node:net';
import { decodeMessage, encodeMessage, type DbusMessage, messageBytes, type DbusValue } from './codec.ts';

export interface Call {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly args?: readonly DbusValue[];
}

interface ConnectionEvents {
  /** Signals, and calls to us. Replies are given to the caller. */
  readonly onMessage: (message: DbusMessage) => void;
  /** Once, when a connection that was open is no more; not after `close`. */
  readonly onClosed: (reason: Error) => void;
}

/** The bus itself, or whoever was called, answered with an error. */
export class DbusError extends Error {
  readonly errorName: string;
  constructor(errorName: string, message: string) {
    super(`${errorName}: ${message}`);
    this.errorName = errorName;
  }
}

export const BUS = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const;

const TIMEOUT_MS = 25_000;

interface Pending {
  readonly resolve: (body: readonly DbusValue[]) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export class DbusConnection {
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #pending = new Map<number, Pending>();
  #unread: Buffer = Buffer.alloc(0);
  #authenticated: ((reply: string) => void) | undefined;
  #closed: Error | undefined;
  #ready = false;
  #serial = 0;

  /** Connects, says who we are, and gets a name on the bus. */
  static async open(path: string, events: ConnectionEvents): Promise<DbusConnection> {
    const connection = new DbusConnection(connect({ path }), events);
    try {
      await connection.#authenticate();
      await connection.call({ ...BUS, member: 'Hello' });
    } catch (error) {
      connection.close();
      throw error;
    }
    connection.#ready = true;
    return connection;
  }

  private constructor(socket: Socket, events: ConnectionEvents) {
    this.#socket = socket;
    this.#events = events;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new Error('the bus closed the connection')));
  }

  /** Why it is no more. */
  get closed(): Error | undefined {
    return this.#closed;
  }

  call(call: Call, timeoutMs = TIMEOUT_MS): Promise<readonly DbusValue[]> {
    const { args = [], ...header } = call;
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(this.#closed);
        return;
      }
      const serial = this.send({ ...header, type: 'call', body: args });
      const timer = setTimeout(() => {
        this.#pending.delete(serial);
        reject(new Error(`no answer from ${call.destination} to ${call.member} within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#pending.set(serial, { resolve, reject, timer });
    });
  }

  /** Returns the serial number of the message. */
  send(message: Omit<DbusMessage, 'serial'>): number {
    this.#serial += 1;
    this.#socket.write(encodeMessage({ ...message, serial: this.#serial }));
    return this.#serial;
  }

  close(): void {
    this.#ready = false;
    this.#end(new Error('the connection was closed'));
  }

  /** Without naming a user, because the bus sees who we are, and in a user namespace it sees another number than us. */
  async #authenticate(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const replies = await new Promise<string>((resolve, reject) => {
      this.#authenticated = resolve;
      this.#socket.once('close', () => reject(this.#closed ?? new Error('the bus closed the connection')));
      timer = setTimeout(
        () => reject(new Error(`the bus did not answer within ${TIMEOUT_MS} ms`)),
        TIMEOUT_MS,
      );
      this.#socket.write('\0AUTH EXTERNAL\r\nDATA\r\n');
    }).finally(() => clearTimeout(timer));
    if (!replies.startsWith('OK')) throw new Error(`the bus refused us: ${replies}`);
    this.#socket.write('BEGIN\r\n');
  }

  #receive(chunk: Buffer): void {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    try {
      if (this.#authenticated) this.#readLines();
      else this.#readMessages();
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** The bus first asks for data, which it has already been sent, and then accepts or rejects. */
  #readLines(): void {
    for (;;) {
      const end = this.#unread.indexOf('\r\n');
      if (end < 0) return;
      const line = this.#unread.toString('latin1', 0, end);
      this.#unread = this.#unread.subarray(end + 2);
      if (line.startsWith('DATA')) continue;
      const authenticated = this.#authenticated;
      this.#authenticated = undefined;
      authenticated?.(line);
      return;
    }
  }

  #readMessages(): void {
    while (!this.#closed) {
      const length = messageBytes(this.#unread);
      if (length === undefined || this.#unread.length < length) return;
      const message = decodeMessage(this.#unread.subarray(0, length));
      this.#unread = this.#unread.subarray(length);
      this.#deliver(message);
    }
  }

  #deliver(message: DbusMessage): void {
    if (message.type !== 'return' && message.type !== 'error') {
      this.#events.onMessage(message);
      return;
    }
    const serial = message.replySerial ?? 0;
    const pending = this.#pending.get(serial);
    if (!pending) return;
    this.#pending.delete(serial);
    clearTimeout(pending.timer);
    if (message.type === 'return') pending.resolve(message.body);
    else pending.reject(new DbusError(message.errorName ?? 'unknown', String(message.body[0] ?? '')));
  }

  #end(reason: Error): void {
    if (this.#closed) return;
    this.#closed = reason;
    this.#socket.destroy();
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(reason);
    }
    this.#pending.clear();
    if (this.#ready) this.#events.onClosed(reason);
  }
}

/**
 * The paths of the unix sockets in an address such as `unix:path=/run/dbus/system_bus_socket,guid=…;unix:abstract=/tmp/x`,
 * as `node:net` takes them. Other transports are left out.
 */
export function socketPaths(address: string): readonly string[] {
  return address.split(';').flatMap((entry) => {
    if (!entry.startsWith('unix:')) return [];
    const pairs = new Map(
      entry
        .slice('unix:'.length)
        .split(',')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), unescape(pair.slice(pair.indexOf('=') + 1))]),
    );
    const abstract = pairs.get('abstract');
    const path = pairs.get('path') ?? (abstract === undefined ? undefined : `\0${abstract}`);
    return path === undefined ? [] : [path];
  });
}

function unescape(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

const SYSTEM_BUS = 'unix:path=/run/dbus/system_bus_socket;unix:path=/var/run/dbus/system_bus_socket';

/** Of the bus that the machine's services are on. */
export function systemBusPaths(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): readonly string[] {
  return socketPaths(environment['DBUS_SYSTEM_BUS_ADDRESS'] || SYSTEM_BUS);
}
