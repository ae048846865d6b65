/** Connections that are held over an event, and new ones that are opened all the while. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Session } from '../../lab/host.ts';
import type { Lab } from '../../lab/lab.ts';
import type { HostName } from '../../lab/topology.ts';
import type { ServiceWords } from '../../test/e2e/cluster.ts';

const CLUSTER_IP = '10.96.0.1';
const EXTERNAL_IP = '198.51.100.200';
const NODE_PORT = 30_080;

/** Three more services, so that there is more than one of everything to write and to remove. */
export const SERVICES: readonly ServiceWords[] = [
  {
    name: 'measured',
    ip: CLUSTER_IP,
    ip6: 'fd00:96::1',
    nodePort: NODE_PORT,
    pods: 'abcd',
    extra: `  externalIPs: [${EXTERNAL_IP}]\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.200}]}}`,
  },
  { name: 'other1', ip: '10.96.0.2', nodePort: 30_081, pods: 'ab' },
  { name: 'other2', ip: '10.96.0.3', nodePort: 30_082, pods: 'cd' },
  { name: 'other3', ip: '10.96.0.4', nodePort: 30_083, pods: 'abc' },
];

/** That a start has to write too. */
export function moreServices(count: number): readonly ServiceWords[] {
  return Array.from({ length: count }, (_, index) => ({
    name: `more${index}`,
    ip: `10.97.${Math.floor(index / 250)}.${1 + (index % 250)}`,
    pods: 'abc',
  }));
}

interface Dial {
  readonly from: HostName;
  readonly address: string;
  readonly port: number;
}

const DIALS: readonly Dial[] = [
  { from: 'client', address: CLUSTER_IP, port: 80 },
  { from: 'client', address: EXTERNAL_IP, port: 80 },
  { from: 'client', address: '192.168.100.2', port: NODE_PORT },
  { from: 'pod-b', address: CLUSTER_IP, port: 80 },
  { from: 'pod-b', address: 'fd00:96::1', port: 80 },
  { from: 'node1', address: CLUSTER_IP, port: 80 },
];

export interface TrafficOptions {
  readonly held: number;
  /** New connections that are under way at a time, and the pause before the next. */
  readonly dialers: number;
  readonly restMs: number;
  /** After which a new connection has failed. */
  readonly patienceMs: number;
}

/** A first packet that got lost is sent again after one second. */
const RESEND_MS = 900;
/** Long enough for three attempts of the kernel to send data again. */
const HELD_PATIENCE_MS = 6000;

export class LossTraffic {
  readonly #lab: Lab;
  readonly #options: TrafficOptions;
  readonly #end = new AbortController();
  #sessions: readonly Session[] = [];
  #dialing: Promise<unknown> = Promise.resolve();
  #startedAt = 0;
  #dialled = 0;
  readonly #failures: string[] = [];
  #delayed = 0;

  constructor(lab: Lab, options: TrafficOptions) {
    this.#lab = lab;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { held, dialers } = this.#options;
    const sessions: Session[] = [];
    for (let index = 0; index < held; index++) {
      const { from, address, port } = dialAt(index);
      const session = await this.#lab.host(from).openSession(address, port, { timeoutMs: HELD_PATIENCE_MS });
      await session.send(HELD_PATIENCE_MS);
      sessions.push(session);
    }
    this.#sessions = sessions;
    this.#startedAt = performance.now();
    this.#dialing = Promise.all(Array.from({ length: dialers }, (_, first) => this.#dial(first)));
  }

  /** Every way in answers, all of them one after another. */
  async answers(): Promise<boolean> {
    for (const { from, address, port } of DIALS) {
      const { patienceMs: timeoutMs } = this.#options;
      const { outcome } = await this.#lab.host(from).request('tcp', address, port, { timeoutMs });
      if (outcome !== 'answer') return false;
    }
    return true;
  }

  /** Resolves when so many connections were opened in all. */
  async opened(connections: number): Promise<void> {
    while (this.#dialled < connections) await sleep(100);
  }

  async stop() {
    this.#end.abort();
    const seconds = (performance.now() - this.#startedAt) / 1000;
    await this.#dialing;
    const outcomes = await Promise.all(this.#sessions.map((session) => session.send(HELD_PATIENCE_MS)));
    await Promise.all(this.#sessions.map((session) => session.close()));
    return {
      held: this.#sessions.length,
      broken: outcomes.filter(({ outcome }) => outcome !== 'answer').length,
      dialled: this.#dialled,
      failed: this.#failures.length,
      failures: this.#failures,
      delayed: this.#delayed,
      seconds,
    };
  }

  async #dial(first: number): Promise<void> {
    const { patienceMs: timeoutMs, restMs } = this.#options;
    for (let index = first; !this.#end.signal.aborted; index++) {
      const { from, address, port } = dialAt(index);
      const begun = performance.now();
      const { outcome } = await this.#lab.host(from).request('tcp', address, port, { timeoutMs });
      this.#dialled++;
      const at = ((begun - this.#startedAt) / 1000).toFixed(1);
      if (outcome !== 'answer')
        this.#failures.push(`${from} to ${address}:${port} after ${at} s: ${outcome}`);
      else if (performance.now() - begun > RESEND_MS) this.#delayed++;
      await sleep(restMs);
    }
  }
}

function dialAt(index: number): Dial {
  const dial = DIALS[index % DIALS.length];
  if (!dial) throw new Error('nothing to dial');
  return dial;
}
