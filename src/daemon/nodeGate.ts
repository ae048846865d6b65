/**
 * Holds back the first sync until this node is known, for a while: without its addresses and its zone the first rules
 * would be others than the second.
 */
import type { Log } from '../log/log.ts';
import type { Cidr } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import type { SourceEvents, SourceProblem } from '../sources/source.ts';
import type { Clock } from '../time/clock.ts';

interface NodeGateOptions {
  readonly inner: SourceEvents;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Wait for a Node at all. */
  readonly waits: boolean;
  /** Nothing works without spec.podCIDRs. */
  readonly needsPodCIDRs: boolean;
  readonly onNode: (node: Node | undefined) => void;
  /** Where cluster IPs come from. */
  readonly onServiceCidrs?: (cidrs: readonly Cidr[]) => void;
  /** What is known of the node is all that will be waited for. False: nothing may be written. */
  readonly mayOpen?: (node: Node | undefined) => boolean;
  readonly onFatal: (error: Error) => void;
}

const ADDRESS_WAIT_MS = 30_000;
const POD_CIDR_WAIT_MS = 5 * 60_000;

export class NodeGate implements SourceEvents {
  readonly #options: NodeGateOptions;
  #node: Node | undefined;
  #state: 'listing' | 'waiting' | 'open' = 'listing';
  #patience = false;
  readonly #cancels: (() => void)[] = [];

  constructor(options: NodeGateOptions) {
    this.#options = options;
  }

  service(key: ObjectKey, current: Service | undefined): void {
    this.#options.inner.service(key, current);
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    this.#options.inner.endpointSlice(key, current);
  }

  serviceCIDRs(cidrs: readonly Cidr[]): void {
    this.#options.onServiceCidrs?.(cidrs);
  }

  report(problem: SourceProblem): void {
    this.#options.inner.report(problem);
  }

  node(name: string, current: Node | undefined): void {
    if (name !== this.#options.nodeName) return;
    this.#logChange(current);
    this.#node = current;
    this.#options.onNode(current);
    // Its zone and its ranges stay in force when it goes: until the machine stops, its pods need forwarding.
    if (current) this.#options.inner.node(name, current);
    if (this.#state === 'waiting') this.#tryOpen();
  }

  synced(): void {
    this.#state = 'waiting';
    const { waits, needsPodCIDRs, clock } = this.#options;
    if (!waits) this.#patience = true;
    this.#tryOpen();
    if (this.#isOpen()) return;
    this.#cancels.push(clock.schedule(ADDRESS_WAIT_MS, () => this.#giveUpOnAddress()));
    if (needsPodCIDRs) this.#cancels.push(clock.schedule(POD_CIDR_WAIT_MS, () => this.#giveUpOnPodCIDRs()));
  }

  close(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #isOpen(): boolean {
    return this.#state === 'open';
  }

  #tryOpen(): void {
    const { waits, needsPodCIDRs, log, inner, nodeName } = this.#options;
    const hasAddress = (this.#node?.ips.length ?? 0) > 0;
    const hasPodCIDRs = (this.#node?.podCIDRs.length ?? 0) > 0;
    if (!hasAddress && !this.#patience) return;
    if (waits && needsPodCIDRs && !hasPodCIDRs) return;
    this.#state = 'open';
    this.close();
    if (this.#options.mayOpen?.(this.#node) === false) return;
    if (hasAddress) log.info('Successfully retrieved NodeIPs', { node: nodeName, nodeIPs: this.#node?.ips });
    inner.synced();
  }

  #giveUpOnAddress(): void {
    const { log, nodeName } = this.#options;
    const what = this.#node ? 'be assigned IPs' : 'exist';
    log.error(`Timed out waiting for node to ${what}`, { node: nodeName });
    this.#patience = true;
    this.#tryOpen();
  }

  #giveUpOnPodCIDRs(): void {
    const { onFatal, nodeName } = this.#options;
    const what = this.#node ? `PodCIDR allocation on node "${nodeName}"` : `node "${nodeName}" to exist`;
    onFatal(new Error(`timeout waiting for ${what}`));
  }

  #logChange(current: Node | undefined): void {
    const { log, nodeName } = this.#options;
    const before = this.#node;
    if (!before) return;
    if (!current) {
      log.info('Node is being deleted', { node: nodeName });
      return;
    }
    if (before.ips.join() !== current.ips.join()) {
      log.info('NodeIPs changed for the node', { node: nodeName, before: before.ips, after: current.ips });
    }
    if (before.podCIDRs.join() !== current.podCIDRs.join()) {
      const change = { before: before.podCIDRs, after: current.podCIDRs };
      log.info('PodCIDRs changed for the node', { node: nodeName, ...change });
    }
  }
}
