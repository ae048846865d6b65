/** Clients that send datagrams from one port all the time: whoever answered the first one answers all of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../lab/lab.ts';
import type { HostName } from '../../lab/topology.ts';
import { manifests } from '../../test/e2e/cluster.ts';

const SERVICE = { name: 'datagrams', ip: '10.96.0.3', ip6: 'fd00:96::3', nodePort: 30_082, pods: 'abcd' };
export const FLOW_MANIFESTS = manifests([SERVICE]).replaceAll('protocol: TCP', 'protocol: UDP');

const FLOWS = (['client', 'pod-b'] as const).flatMap((from) => [
  { from, address: SERVICE.ip, port: 80 },
  { from, address: SERVICE.ip6, port: 80 },
  { from, address: '192.168.100.2', port: SERVICE.nodePort },
]);
const FIRST_PORT = 45_000;
const PORTS = 12_000;
const REST_MS = 300;
const SILENCE_MS = 500;

export interface FlowFailure {
  readonly text: string;
  readonly from: number;
  readonly to: number;
  /** Somebody else answered, which is wrong at any time. */
  readonly isMoved: boolean;
}

export class Flows {
  readonly #lab: Lab;
  readonly failures: FlowFailure[] = [];
  datagrams = 0;
  /** How often all of them began again. */
  #renewals = 0;

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  get count(): number {
    return FLOWS.length;
  }

  /** From other ports, and whoever answers first then. */
  renew(): void {
    this.#renewals++;
  }

  async run(end: AbortSignal): Promise<void> {
    await Promise.all(FLOWS.map((flow, index) => this.#use(flow.from, flow.address, flow.port, index, end)));
  }

  async #use(host: HostName, address: string, port: number, index: number, end: AbortSignal): Promise<void> {
    let first: string | undefined;
    let renewals = 0;
    while (!end.aborted) {
      if (renewals !== this.#renewals) first = undefined;
      renewals = this.#renewals;
      const sourcePort = FIRST_PORT + ((renewals * FLOWS.length + index) % PORTS);
      const from = performance.now();
      const options = { sourcePort, timeoutMs: SILENCE_MS };
      const answer = await this.#lab.host(host).request('udp', address, port, options);
      this.datagrams++;
      const seen = answer.outcome === 'answer' ? answer.reply.host : undefined;
      first ??= seen;
      // A datagram that was under way when all began again is of no flow.
      if (renewals !== this.#renewals) continue;
      if (seen === undefined || seen !== first) {
        const text = `${host} to ${address} port ${port} udp: ${seen ?? answer.outcome}, not ${first}`;
        this.failures.push({ text, from, to: performance.now(), isMoved: seen !== undefined });
      }
      await sleep(REST_MS);
    }
  }
}
