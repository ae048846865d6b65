/**
 * Clients of services that do not change: connections that stay open and are used all the time, and a stream of new
 * ones. None of them may fail, whoever takes our rules away; a new one may take longer.
 *
 * But when that happens while Junction is dead, nobody holds the place: the kernel does not translate open connections
 * either. Those are counted apart.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Session } from '../../lab/host.ts';
import type { Lab } from '../../lab/lab.ts';
import type { HostName } from '../../lab/topology.ts';
import { FLOW_MANIFESTS, Flows } from './flows.ts';
import { manifests } from '../../test/e2e/cluster.ts';

const STABLE = { ip: '10.96.0.1', ip6: 'fd00:96::1', nodePort: 30_080 };
const STICKY = { ip: '10.96.0.2', ip6: 'fd00:96::2', nodePort: 30_081 };

/** The services that do not change. */
export const STABLE_MANIFESTS = [
  FLOW_MANIFESTS,
  manifests([
    {
      name: 'stable',
      ...STABLE,
      pods: 'abcd',
      extra: '  externalIPs: [198.51.100.200]\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.200}]}}',
    },
    { name: 'sticky', ...STICKY, pods: 'abc', extra: '  sessionAffinity: ClientIP' },
  ]),
].join('---\n');

interface Dialled {
  readonly from: HostName;
  readonly address: string;
  readonly port: number;
}

const FRONTENDS: readonly Dialled[] = (['client', 'pod-b', 'node1'] as const).flatMap((from) => [
  { from, address: STABLE.ip, port: 80 },
  { from, address: STABLE.ip6, port: 80 },
  { from, address: '198.51.100.200', port: 80 },
  { from, address: STICKY.ip, port: 80 },
  { from, address: STICKY.ip6, port: 80 },
  { from, address: '192.168.100.2', port: STABLE.nodePort },
  { from, address: 'fd00:100::2', port: STABLE.nodePort },
  { from, address: '192.168.100.2', port: STICKY.nodePort },
]);
/** Below those that the lab gives sessions, which stay open, and that the kernel gives out by itself. */
const FIRST_PORT = 12_000;
const LAST_PORT = 19_900;
const PROBE_MS = 400;
/** A first packet that was lost is sent again after one second, three, seven, 15 and 31: a repair takes seconds on a busy machine. */
const PATIENCE_MS = 35_000;
const RESEND_MS = 900;
const REST_MS = 15;
const SESSION_REST_MS = 250;
const SILENCE_MS = 5000;

export interface TrafficReport {
  readonly sessions: number;
  readonly messages: number;
  readonly lostSessions: readonly string[];
  /** Of datagrams from one port each. */
  readonly flows: number;
  readonly datagrams: number;
  readonly lostDatagrams: readonly string[];
  readonly connections: number;
  readonly lostConnections: readonly string[];
  /** New connections whose first packet had to be sent again. */
  readonly heldBack: number;
  readonly longestWaitMs: number;
  /** How often others took the rules away. */
  readonly holes: number;
  /** How often they did while nobody was there, and what that cost. */
  readonly unattended: { readonly holes: number; readonly sessions: number; readonly connections: number };
}

interface Hole {
  /** Whether somebody was there to repair it. */
  readonly kind: 'repaired' | 'unattended';
  readonly from: number;
  to: number;
}

type Span = Pick<Readonly<Hole>, 'from' | 'to'>;

interface Failure extends Span {
  readonly frontend: Dialled;
  readonly outcome: string;
}

export class Traffic {
  readonly #lab: Lab;
  readonly #hasBackstop: boolean;
  readonly #sessions = new Map<Dialled, Session>();
  readonly #ports = new Map<HostName, number>();
  readonly #holes: Hole[] = [];
  readonly #failures: Failure[] = [];
  readonly #brokenSessions: Failure[] = [];
  #messages = 0;
  #connections = 0;
  #heldBack = 0;
  #longestWaitMs = 0;
  readonly #flows: Flows;
  readonly #end = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(lab: Lab, hasBackstop: boolean) {
    this.#lab = lab;
    this.#hasBackstop = hasBackstop;
    this.#flows = new Flows(lab);
  }

  async start(): Promise<void> {
    for (const frontend of FRONTENDS) await this.#open(frontend);
    this.#running = [
      this.#useSessions(),
      this.#connect(0),
      this.#connect(FRONTENDS.length >> 1),
      this.#flows.run(this.#end.signal),
    ];
  }

  /** Runs something that takes the rules away, and waits until every frontend answers again. */
  async hole(kind: Hole['kind'], work: () => Promise<void>): Promise<void> {
    const hole: Hole = { kind, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.#holes.push(hole);
    await work();
    for (const frontend of FRONTENDS)
      while (!(await this.#dial(frontend, PROBE_MS)).isAnswered) await sleep(10);
    // What a flow sent in the hole without a backstop is not translated, and the kernel keeps to that for each later datagram.
    if (!this.#hasBackstop) this.#flows.renew();
    hole.to = performance.now();
  }

  async stop(): Promise<TrafficReport> {
    this.#end.abort();
    await Promise.all(this.#running);
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
    const unattended = this.#holes.filter(({ kind }) => kind === 'unattended' || !this.#hasBackstop);
    const isUnattended = ({ from, to }: Span): boolean =>
      unattended.some((hole) => from < hole.to && to > hole.from);
    const lost = this.#failures.filter((failure) => !isUnattended(failure));
    const lostSessions = this.#brokenSessions.filter((failure) => !isUnattended(failure));
    return {
      sessions: FRONTENDS.length,
      messages: this.#messages,
      lostSessions: lostSessions.map(print),
      flows: this.#flows.count,
      datagrams: this.#flows.datagrams,
      lostDatagrams: this.#flows.failures
        .filter((failure) => failure.isMoved || !isUnattended(failure))
        .map(({ text, from }) => `${text} at ${printTime(from)}`),
      connections: this.#connections,
      lostConnections: lost.map(print),
      heldBack: this.#heldBack,
      longestWaitMs: this.#longestWaitMs,
      holes: this.#holes.length - unattended.length,
      unattended: {
        holes: unattended.length,
        sessions: this.#brokenSessions.length - lostSessions.length,
        connections: this.#failures.length - lost.length,
      },
    };
  }

  /**
   * For two minutes the kernel remembers that a connection that was begun in a hole is not translated, and another one
   * from the same port to the same service would be lost like it.
   */
  #freshPort(host: HostName): number {
    const port = (this.#ports.get(host) ?? FIRST_PORT) + 1;
    this.#ports.set(host, port < LAST_PORT ? port : FIRST_PORT);
    return port;
  }

  async #open(frontend: Dialled): Promise<void> {
    this.#sessions.set(
      frontend,
      await this.#lab.host(frontend.from).openSession(frontend.address, frontend.port),
    );
  }

  async #useSessions(): Promise<void> {
    while (!this.#end.signal.aborted) {
      await Promise.all([...this.#sessions].map(([frontend, session]) => this.#use(frontend, session)));
      await sleep(SESSION_REST_MS);
    }
  }

  async #use(frontend: Dialled, session: Session): Promise<void> {
    const from = performance.now();
    const { outcome } = await session.send(SILENCE_MS);
    this.#messages++;
    if (outcome === 'answer') return;
    this.#brokenSessions.push({ frontend, outcome, from, to: performance.now() });
    this.#sessions.delete(frontend);
    await session.close();
    while (!(await this.#dial(frontend, PROBE_MS)).isAnswered) await sleep(100);
    await this.#open(frontend);
  }

  async #connect(first: number): Promise<void> {
    for (let index = first; !this.#end.signal.aborted; index++) {
      const frontend = FRONTENDS[index % FRONTENDS.length];
      if (!frontend) continue;
      const from = performance.now();
      const { isAnswered, outcome } = await this.#dial(frontend, PATIENCE_MS);
      const to = performance.now();
      this.#connections++;
      if (!isAnswered) this.#failures.push({ frontend, outcome, from, to });
      else if (to - from > RESEND_MS) this.#heldBack++;
      if (isAnswered) this.#longestWaitMs = Math.max(this.#longestWaitMs, to - from);
      await sleep(REST_MS);
    }
  }

  async #dial({ from, address, port }: Dialled, timeoutMs: number) {
    const sourcePort = this.#freshPort(from);
    const { outcome } = await this.#lab.host(from).request('tcp', address, port, { timeoutMs, sourcePort });
    return { isAnswered: outcome === 'answer', outcome };
  }
}

function print({ frontend, outcome, from }: Failure): string {
  const { from: host, address, port } = frontend;
  return `${host} to ${address} port ${port}: ${outcome} at ${printTime(from)}`;
}

/** As the daemon's log has it. */
function printTime(moment: number): string {
  return new Date(performance.timeOrigin + moment).toISOString().slice(11, 23);
}
