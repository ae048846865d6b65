import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { FAMILIES } from '../src/model/ip.ts';
import type { AgentProcess } from './agentProcess.ts';
import type { CommandResult, Dial, Listen, Outcome, Transport } from './protocol.ts';
import { toolEnvironment } from './tools.ts';
import { ADDRESSES, type Addresses, type HostName } from './topology.ts';

/**
 * Ten times the 1.5 s that the slowest answer takes on a quiet machine. On veth an ICMPv6 rejection comes back while
 * connect() still holds the socket, the kernel then only notes it (LockDroppedIcmps), and the SYN that is repeated after
 * a second is the first to be refused aloud. Who expects silence sets a shorter time.
 */
export const REQUEST_TIMEOUT_MS = 15_000;
const COMMAND_TIMEOUT_MS = 300_000;
/** Below the node ports and the ports that the kernel chooses from. */
const FRESH_PORTS = { first: 11_000, count: 19_000 };
/** A caller that died before the kernel was asked for a signal at its death causes no signal any more. */
const UNLESS_ORPHANED = '[ "$PPID" = "$0" ] && exec "$@"';
const LOOPBACK = ['127.0.0.1', '::1'];

export interface DialOptions {
  /** The address to send from; it must be the host's own. */
  readonly source?: string;
  /** By default one that was not used before. */
  readonly sourcePort?: number;
  readonly timeoutMs?: number;
}

export interface ExecOptions {
  readonly stdin?: string;
  readonly timeoutMs?: number;
}

/** Something that listens until it is closed. Open connections outlive it. */
export interface Serving {
  close(): Promise<void>;
}

/** A TCP connection that stays open over several questions. */
export interface Session {
  send(timeoutMs?: number): Promise<Outcome>;
  close(): Promise<void>;
}

export class Host {
  readonly name: HostName;
  readonly pid: number;
  readonly addresses: Addresses;
  readonly #agent: AgentProcess;
  readonly #spawned = new Set<ChildProcess>();
  #portsTaken = 0;

  constructor(name: HostName, agent: AgentProcess) {
    this.name = name;
    this.pid = agent.pid;
    this.addresses = ADDRESSES[name];
    this.#agent = agent;
  }

  request(protocol: Transport, address: string, port: number, options: DialOptions = {}): Promise<Outcome> {
    return this.#agent.call('request', { protocol, ...this.#dial(address, port, options) });
  }

  /** Fails when the connection does: a test that wants to see that uses `request`. */
  async openSession(address: string, port: number, options: DialOptions = {}): Promise<Session> {
    const opened = await this.#agent.call('openSession', this.#dial(address, port, options));
    if (opened.outcome !== 'open') {
      throw new Error(
        `${this.name} cannot open a session to ${address} port ${port}: ${JSON.stringify(opened)}`,
      );
    }
    const { session } = opened;
    return {
      send: (timeoutMs = REQUEST_TIMEOUT_MS) => this.#agent.call('send', { session, timeoutMs }),
      close: async () => void (await this.#agent.call('closeSession', session)),
    };
  }

  /** Without an address: on every address of the host, loopback included. */
  async serve(listens: readonly Listen[]): Promise<Serving> {
    const serving = await this.#agent.call(
      'serve',
      listens.flatMap((listen) => this.#sockets(listen)),
    );
    return { close: async () => void (await this.#agent.call('stopServing', serving)) };
  }

  /** `undefined` where the kernel has SCTP. */
  async whyNoSctp(): Promise<string | undefined> {
    return (await this.#agent.call('whyNoSctp', null)) ?? undefined;
  }

  exec(argv: readonly string[], options: ExecOptions = {}): Promise<CommandResult> {
    return this.#agent.call('exec', {
      argv,
      timeoutMs: options.timeoutMs ?? COMMAND_TIMEOUT_MS,
      ...(options.stdin !== undefined && { stdin: options.stdin }),
    });
  }

  /** Like `exec`, and fails when the command does. Returns what it printed. */
  async run(argv: readonly string[], options: ExecOptions = {}): Promise<string> {
    const { exitCode, stdout, stderr, timedOut } = await this.exec(argv, options);
    if (exitCode === 0) return stdout;
    const how = timedOut ? 'took too long' : `ended with ${exitCode ?? 'a signal'}`;
    throw new Error(`${this.name}: ${argv.join(' ')} ${how}\n${stderr}${stdout}`);
  }

  async sysctl(values: Readonly<Record<string, string>>): Promise<readonly string[]> {
    return this.#agent.call('sysctl', values);
  }

  /**
   * A process of the caller's own, in this host's network. It dies with the caller: a process left over from a crash
   * would keep the namespace alive.
   */
  spawn(argv: readonly string[], options: SpawnOptions = {}): ChildProcess {
    const guarded = ['--pdeathsig', 'KILL', 'sh', '-c', UNLESS_ORPHANED, String(process.pid)];
    const enter = [...guarded, 'nsenter', `--net=/proc/${this.pid}/ns/net`, '--', ...argv];
    const child = spawn('setpriv', enter, { env: toolEnvironment(), ...options });
    this.#spawned.add(child);
    child.once('exit', () => this.#spawned.delete(child));
    child.once('error', () => this.#spawned.delete(child));
    return child;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#spawned].map(end));
    await this.#agent.close();
  }

  /**
   * Returns a source port that was not used before. The kernel gives two connections to two addresses the same port now and then.
   * Where both lead to one endpoint IPVS cannot distinguish them, and a port that was used before may still belong to a
   * connection that the kernel tracks.
   */
  #freshPort(): number {
    return FRESH_PORTS.first + (this.#portsTaken++ % FRESH_PORTS.count);
  }

  #dial(address: string, port: number, options: DialOptions): Dial {
    const { sourcePort = this.#freshPort(), timeoutMs = REQUEST_TIMEOUT_MS } = options;
    return { address, port, ...options, sourcePort, timeoutMs };
  }

  #sockets(listen: Listen): readonly Listen[] {
    if (listen.protocol === 'tcp' || listen.address !== undefined) return [listen];
    const own = [...FAMILIES.flatMap((family) => this.addresses[family]), ...LOOPBACK];
    return own.map((address) => ({ ...listen, address }));
  }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  if (child.kill('SIGKILL')) await exited;
}
