/**
 * The whole proxy: hands events to the families that they concern.
 *
 * The first sync waits until this node is known, for a while: without its addresses and its zone the first rules would
 * be others than the second.
 */
import type { Log } from '../log/log.ts';
import type { Cidr } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import { printSourceProblem, type SourceEvents, type SourceProblem } from '../sources/source.ts';
import { systemClock } from '../time/systemClock.ts';
import type { Proxier } from './proxier.ts';
import type { SyncRunner } from './syncRunner.ts';

interface DualStackProxierOptions {
  readonly nodeName: string;
  readonly runners: readonly SyncRunner[];
  readonly log: Log;
  /** What the first sync waits for, and without spec.podCIDRs for ever; unset: for nothing. */
  readonly waitsFor?: 'addresses' | 'podCIDRs' | undefined;
  readonly onNode?: (node: Node | undefined) => void;
  /** Where cluster IPs come from. */
  readonly onServiceCidrs?: (cidrs: readonly Cidr[]) => void;
  /** Called before the first sync with all that is known of the node. False: nothing may be written. */
  readonly maySync?: (node: Node | undefined) => boolean;
  readonly onFatal?: (error: Error) => void;
  /** Called after it is logged. */
  readonly onProblem?: (problem: SourceProblem) => void;
  readonly onReceived?: () => void;
}

const ADDRESS_WAIT_MS = 30_000;
const POD_CIDR_WAIT_MS = 5 * 60_000;

export class DualStackProxier implements SourceEvents {
  readonly #options: DualStackProxierOptions;
  #node: Node | undefined;
  #state: 'listing' | 'waiting' | 'open' = 'listing';
  #needsAddress: boolean;
  readonly #cancels: (() => void)[] = [];
  #lastEventAt: number | undefined;
  #serviceCidrs: readonly Cidr[] = [];

  constructor(options: DualStackProxierOptions) {
    this.#options = options;
    this.#needsAddress = options.waitsFor !== undefined;
  }

  /** The Node object, where there is one. */
  get currentNode(): Node | undefined {
    return this.#node;
  }

  get knownServiceCidrs(): readonly Cidr[] {
    return this.#serviceCidrs;
  }

  /** Why nothing may be written yet, a sentence each; empty: it may. */
  get waitsFor(): readonly string[] {
    const { nodeName } = this.#options;
    if (this.#state === 'listing') return ['not everything has been listed for the first time'];
    if (this.#state === 'open') return [];
    if (!this.#node) return [`Node ${nodeName} is not known yet`];
    return [`Node ${nodeName} has no ${this.#node.ips.length === 0 ? 'addresses' : 'spec.podCIDRs'} yet`];
  }

  /** When an object last came, in milliseconds since the epoch. */
  get lastEventAt(): number | undefined {
    return this.#lastEventAt;
  }

  service(key: ObjectKey, current: Service | undefined): void {
    this.#lastEventAt = Date.now();
    this.#each((proxier) => proxier.onService(key, current));
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    this.#lastEventAt = Date.now();
    this.#each((proxier) => proxier.onEndpointSlice(key, current));
  }

  serviceCIDRs(cidrs: readonly Cidr[]): void {
    this.#serviceCidrs = cidrs;
    this.#options.onServiceCidrs?.(cidrs);
  }

  node(name: string, current: Node | undefined): void {
    if (name !== this.#options.nodeName) return;
    this.#lastEventAt = Date.now();
    this.#logChange(current);
    this.#node = current;
    this.#options.onNode?.(current);
    // Its zone and its ranges stay in force when it is deleted: until the machine stops, its pods need forwarding.
    if (current) this.#each((proxier) => proxier.onNode(current));
    if (this.#state === 'waiting') this.#tryOpen();
  }

  synced(): void {
    this.#state = 'waiting';
    if (this.#tryOpen()) return;
    this.#cancels.push(systemClock.schedule(ADDRESS_WAIT_MS, () => this.#giveUpOnAddress()));
    if (this.#options.waitsFor === 'podCIDRs')
      this.#cancels.push(systemClock.schedule(POD_CIDR_WAIT_MS, () => this.#giveUpOnPodCIDRs()));
  }

  report(problem: SourceProblem): void {
    const { log, onProblem } = this.#options;
    const line = printSourceProblem(problem);
    if (problem.severity === 'error') log.error(line);
    else log.warn(line);
    onProblem?.(problem);
  }

  received(): void {
    this.#options.onReceived?.();
  }

  close(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #each(update: (proxier: Proxier) => boolean): void {
    for (const runner of this.#options.runners) if (update(runner.proxier)) runner.request();
  }

  #tryOpen(): boolean {
    const { nodeName, runners, log, waitsFor, maySync } = this.#options;
    const { ips = [], podCIDRs = [] } = this.#node ?? {};
    if (ips.length === 0 && this.#needsAddress) return false;
    if (podCIDRs.length === 0 && waitsFor === 'podCIDRs') return false;
    this.#state = 'open';
    this.close();
    if (maySync?.(this.#node) === false) return true;
    if (ips.length > 0) log.info('Successfully retrieved NodeIPs', { node: nodeName, nodeIPs: ips });
    for (const runner of runners) {
      runner.proxier.onSynced();
      runner.request();
    }
    return true;
  }

  #giveUpOnAddress(): void {
    const { log, nodeName } = this.#options;
    log.error(`Timed out waiting for node to ${this.#node ? 'be assigned IPs' : 'exist'}`, {
      node: nodeName,
    });
    this.#needsAddress = false;
    this.#tryOpen();
  }

  #giveUpOnPodCIDRs(): void {
    const { onFatal, nodeName } = this.#options;
    const what = this.#node ? `PodCIDR allocation on node "${nodeName}"` : `node "${nodeName}" to exist`;
    onFatal?.(new Error(`timeout waiting for ${what}`));
  }

  #logChange(current: Node | undefined): void {
    const { log, nodeName: node } = this.#options;
    const before = this.#node;
    if (!before) return;
    if (!current) log.info('Node is being deleted', { node });
    else if (before.ips.join() !== current.ips.join())
      log.info('NodeIPs changed for the node', { node, before: before.ips, after: current.ips });
    if (current && before.podCIDRs.join() !== current.podCIDRs.join())
      log.info('PodCIDRs changed for the node', { node, before: before.podCIDRs, after: current.podCIDRs });
  }
}
