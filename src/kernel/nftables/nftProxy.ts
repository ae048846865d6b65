/** The nftables backend of one family, joined to the real kernel. */
import type { SyncReport } from '../../backends/iptables/backend.ts';
import { NftBackend, type NftReport } from '../../backends/nftables/backend.ts';
import type { Ruleset } from '../../backends/nftables/rule.ts';
import type { NftDoor } from '../../backends/nftables/transaction.ts';
import type { Cidr, Family, Ip } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/servicePort.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { Breath } from '../../sync/breath.ts';
import { systemClock } from '../../sync/systemClock.ts';
import { elementsOf } from './sets.ts';
import type { ElementNews } from './watch.ts';

export interface NftProxyOptions {
  readonly door: NftDoor;
  readonly masqueradeBit: number;
  readonly counters: boolean;
  /** The node's own addresses in this family, without loopback. */
  readonly nodeIps: () => readonly Ip[];
  /** Where cluster IPs come from, as far as that is known. */
  readonly serviceCidrs: () => readonly Cidr[];
}

export class NftProxy {
  readonly #options: NftProxyOptions;
  readonly #backend: NftBackend;

  constructor(options: NftProxyOptions) {
    this.#options = options;
    this.#backend = new NftBackend({
      door: options.door,
      now: () => systemClock.now(),
      breath: new Breath(systemClock),
    });
  }

  async sync(plan: Plan, dirty: Iterable<ServicePortId>): Promise<SyncReport> {
    const { masqueradeBit, counters, nodeIps, serviceCidrs } = this.#options;
    const own = [...nodeIps()].sort();
    const report = await this.#backend.sync(plan, dirty, {
      nodeIps: own,
      masqueradeMark: (1 << masqueradeBit) >>> 0,
      counters,
      nodePortIps: own.filter((ip) => answersNodePorts(plan.view.nodePorts, ip)),
      serviceCidrs: [...serviceCidrs()].sort(),
    });
    return toReport(report, this.#backend);
  }

  /** The table as it was last written. */
  get ruleset(): Ruleset {
    return this.#backend.ruleset;
  }

  /** What somebody else did to elements, to be mended by the next sync; `false`: that has to read the table. */
  noteForeign(news: readonly ElementNews[], family: Family): boolean {
    const sets = new Map(this.ruleset.sets.map((set) => [set.name, set]));
    // Of an interval, either end is told by itself.
    if (news.some(({ set }) => sets.get(set)?.ranges && sets.get(set)?.key.length === 1)) return false;
    for (const { set: name, elements, isThere } of news) {
      const set = sets.get(name);
      if (!set) continue;
      const foreign = elementsOf(set, elements, family).map((element) => ({ element, isThere }));
      this.#backend.noteForeign(foreign);
    }
    return true;
  }

  requestFull(): void {
    this.#backend.requestFull();
  }
}

/** In the words that all modes report in: a transaction is what a restore is elsewhere, an element what a rule is. */
function toReport(report: NftReport, { ruleset }: NftBackend): SyncReport {
  const rules = ruleset.chains.reduce((sum, chain) => sum + chain.rules.length, 0);
  return {
    kind: report.kind,
    restores: report.transactions,
    bytes: 0,
    chains: ruleset.chains.length,
    rules: report.elements,
    written: { filter: 0, nat: report.elements, mangle: 0 },
    refusals: 0,
    owned: { filter: 0, nat: rules, mangle: 0 },
    refused: report.refused,
  };
}
