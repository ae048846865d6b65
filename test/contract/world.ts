/** A small cluster around node1 of the lab, told in lines, and the plan that node1 makes of it. */
import { ADDRESSES, addressOf, HOST_NAMES, PODS_OF } from '../../lab/topology.ts';
import type { Family, Ip } from '../../src/model/ip.ts';
import type { ServicePortId } from '../../src/model/serviceTracker.ts';
import type { Plan } from '../../src/plan/types.ts';
import { nodeView } from '../../src/plan/view.ts';
import { Cluster } from '../plan/cluster.ts';
import { ip } from '../plan/given.ts';
import { node1Addresses, POD_NETWORK } from '../scenarios/scenario.ts';

/** `| pod-a`: an endpoint is a host of the lab. */
const ENDPOINT = new RegExp(`\\|\\s*(${HOST_NAMES.join('|')})\\b`, 'g');
const MANY = /^(\d+) services$/;

export class World {
  readonly family: Family;
  readonly #cluster: Cluster;
  readonly #unwritten = new Set<ServicePortId>();
  #zone: string | undefined;
  nodeIps: readonly Ip[];

  constructor(family: Family, mode: { readonly localhostNodePorts: boolean }) {
    this.family = family;
    this.nodeIps = node1Addresses(family);
    this.#localhostNodePorts = mode.localhostNodePorts;
    this.#cluster = new Cluster(this.#view(), family);
  }

  readonly #localhostNodePorts: boolean;

  get plan(): Plan {
    return this.#cluster.planner;
  }

  /** Service ports that changed and were not written since. */
  get unwritten(): readonly ServicePortId[] {
    for (const id of this.#cluster.takeDirty()) this.#unwritten.add(id);
    return [...this.#unwritten];
  }

  written(): void {
    this.#unwritten.clear();
  }

  tell(lines: readonly string[]): void {
    this.#cluster.tell(...lines.flatMap((line) => this.#linesOf(line)));
  }

  setZone(zone: string): void {
    this.#zone = zone;
    this.#cluster.setView(this.#view());
  }

  #view() {
    const settings = {
      nodeName: 'node1',
      bindAddress: undefined,
      detectLocal: POD_NETWORK,
      masqueradeAll: false,
      nodePortAddresses: [],
      localhostNodePorts: this.#localhostNodePorts,
    };
    const node = {
      name: 'node1',
      ips: [addressOf('node1', this.family)],
      podCIDRs: [],
      eligible: true,
      zone: this.#zone,
    };
    return nodeView(settings, node, this.family);
  }

  #linesOf(line: string): readonly string[] {
    const many = Number(MANY.exec(line)?.[1] ?? 0);
    if (many > 0) return manyServices(many);
    return [line.replaceAll(ENDPOINT, (_, host: string) => `| ${this.#endpoint(host)}`)];
  }

  #endpoint(host: string): string {
    const name = HOST_NAMES.find((known) => known === host) ?? 'node1';
    const isOfNode1 = name === 'node1' || PODS_OF.node1.some((pod) => pod === name);
    return `${ip(ADDRESSES[name][this.family][0] ?? '')} ${isOfNode1 ? 'node1' : 'node2'}`;
  }
}

function manyServices(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => {
    const address = `${n >> 8}.${n & 255}`;
    const endpoints = [1, 2, 3].map((each) => `| 10.${each}.${address} node2`).join(' ');
    return [`many/s${n} 10.97.${address} 80@${20_000 + n}`, `many/s${n}-1 of s${n} 80 ${endpoints}`];
  }).flat();
}
