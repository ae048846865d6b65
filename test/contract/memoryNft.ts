/** The nftables mode on a kernel in memory, and what that makes of a packet. */
import type { Family, Ip } from '../../src/model/ip.ts';
import { NftReader } from '../../src/modes/nftables/inspect.ts';
import type { KnownFacts } from '../../src/modes/nftables/kernel/compare.ts';
import {
  type ListedSet,
  MemorySource,
  type NftSource,
  type WholeChain,
} from '../../src/modes/nftables/kernel/source.ts';
import { lowerRule } from '../../src/modes/nftables/lower.ts';
import { NFT_FAMILY } from '../../src/modes/nftables/rules/print.ts';
import type { TableSet } from '../../src/modes/nftables/rules/table.ts';
import { encodedElements, specOf } from '../../src/modes/nftables/sets.ts';
import type { Learned, WalkOutcome } from '../../src/modes/kernelRules.ts';
import { propertiesOf } from '../../src/netlink/nftables/setSpec.ts';
import { decide, isLocal, type Packet } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import { mostLookups } from '../modes/nftables/rules/bound.ts';
import { meaningOf } from '../modes/nftables/rules/cluster.ts';
import { FakeNftKernel } from '../modes/nftables/rules/fakeKernel.ts';
import { printWalk, printWay } from '../scenarios/expectations.ts';
import { printRow, type Subject } from '../scenarios/packets.ts';
import { NODE1, node1Addresses } from '../scenarios/scenario.ts';
import { type Faults, faultyNft } from './faults.ts';
import { MemorySide } from './memorySide.ts';
import { nftMode, withoutLoopback } from './modes.ts';
import type { Deed } from './node.ts';

export class NftSide extends MemorySide {
  readonly mechanism = 'nftables';
  readonly kernel = new FakeNftKernel(this.family);
  override readonly isProtected: boolean;

  /** `isProtected`: by the kernel; else other programs can change the table. */
  constructor(family: Family, isProtected = true) {
    super(family);
    this.isProtected = isProtected;
  }

  protected async open(nodeIps: () => readonly Ip[], faults: Faults): Promise<KernelWriter> {
    const { kernel, isProtected, clock } = this;
    kernel.endProcess();
    return nftMode(faultyNft(kernel, faults), nodeIps, { clock, isProtected });
  }

  async reader(): Promise<NftReader> {
    return this.#readerOf(sourceOf(this.kernel));
  }

  #readerOf(source: NftSource): NftReader {
    const { family } = this;
    const nodeIps = withoutLoopback(node1Addresses(family));
    const facts: KnownFacts = { masqueradeBit: 14, counters: true, nodeIps };
    return new NftReader({ family, source, facts: () => facts });
  }

  async packets(rows: readonly Subject[], { plan }: { readonly plan: Plan }): Promise<readonly string[]> {
    const source = sourceOf(this.kernel);
    const most = mostLookupsOf(this.kernel);
    const seen: string[] = [];
    for (const row of rows) seen.push(await this.#walked(row, plan, source, most(row.packet)));
    return seen;
  }

  /** In the words of the row. What cannot be said in them is wrong. */
  async #walked(row: Subject, plan: Plan, source: NftSource, most: number): Promise<string> {
    const result = await this.#readerOf(source).walk(row.packet, NODE1);
    const excess = result.outcomes.find(({ lookups }) => lookups > most);
    if (excess) return printRow(row, `${excess.lookups} lookups, more than ${most}`);
    const decision = decide(plan, row.packet, NODE1);
    const seconds = decision.verdict === 'pass' ? undefined : decision.servicePort.affinitySeconds;
    for (const outcome of result.outcomes) {
      if (outcome.learned.some(({ timeoutMs }) => timeoutMs !== (seconds ?? 0) * 1000))
        return printRow(row, 'remembers its client for another time');
      if (outcome.learned.length > 0 && !(await this.#isKept(row, outcome, source)))
        return printRow(row, 'forgets its client');
    }
    return printWalk(row, result);
  }

  /** Whether a client that was sent to an endpoint once is sent there again, and nowhere else, and still remembered. */
  async #isKept(row: Subject, first: WalkOutcome, source: NftSource): Promise<boolean> {
    const reader = this.#readerOf(withLearned(source, first.learned));
    const { outcomes } = await reader.walk(row.packet, NODE1);
    const [only] = outcomes;
    return (
      outcomes.length === 1 && only?.learned.length === 1 && printWay(row, only) === printWay(row, first)
    );
  }

  get state(): readonly string[] {
    return meaningOf(this.kernel);
  }

  protected fresh(): MemorySide {
    return new NftSide(this.family, this.isProtected);
  }

  async perform(deed: Deed): Promise<boolean> {
    const { kernel } = this;
    switch (deed.kind) {
      case 'flush':
        return kernel.flush();
      case 'deleteHooks': {
        const hooks = kernel.ruleset.chains.filter(({ hook }) => hook);
        return kernel.tamper(...hooks.map(({ name: chain }) => ({ kind: 'deleteChain', chain }) as const));
      }
      case 'deleteService':
        return kernel.tamper(
          ...kernel.ruleset.sets.flatMap((set) => {
            const elements = kernel.elements.filter(
              (each) => each.set === set.name && each.key.address === deed.clusterIP,
            );
            return elements.length > 0 ? [{ kind: 'deleteElements', set, elements } as const] : [];
          }),
        );
      case 'addOwnRules': // in a table of its own
        return true;
    }
  }
}

/** How often a packet may ask the table. */
function mostLookupsOf({ ruleset }: FakeNftKernel): (packet: Packet) => number {
  const most = mostLookups(ruleset);
  const rules = (name: string): number =>
    ruleset.chains.find((chain) => chain.name === name)?.rules.length ?? 0;
  const documented = 12 + rules('any') + rules('outside') + rules('remember');
  // An address may be a service's and the node's: then both may be asked.
  return ({ destination }) => (isLocal(destination, NODE1) ? most : Math.min(most, documented));
}

/** The table, as the bytes that a kernel would answer with; those of a set only when it is asked for. */
function sourceOf({ inForce, family }: FakeNftKernel): NftSource {
  if (!inForce) return new MemorySource([]);
  const [name, { sets, chains }] = inForce;
  const table = { family: NFT_FAMILY[family], table: name };
  const rules = Array.from(
    chains,
    ([chain, { hook, rules: ofChain }]): WholeChain => ({
      name: chain,
      base: hook && { type: 'nat', hook: hook.point, priority: hook.priority, policy: 'accept' },
      rules: ofChain.map((rule) => ({ expressions: lowerRule(rule, family) })),
    }),
  );
  const listed = (set: TableSet): ListedSet => ({ name: set.name, ...propertiesOf(specOf(set, family)) });
  const whole = {
    isDormant: false,
    chains: rules,
    sets: Array.from(sets.values(), ({ set }) => listed(set)),
  };
  const ofRules = new MemorySource([{ ...table, ...whole, sets: [] }]);
  const ofSets = new Map<string, MemorySource>();
  const ofSet = (asked: string): MemorySource => {
    const known = ofSets.get(asked);
    if (known) return known;
    const found = sets.get(asked);
    const elements = found ? encodedElements(found.set, [...found.elements.values()], family) : [];
    const read = new MemorySource([
      { ...table, isDormant: false, chains: [], sets: found ? [{ ...listed(found.set), elements }] : [] },
    ]);
    ofSets.set(asked, read);
    return read;
  };
  return {
    generation: () => ofRules.generation(),
    chains: () => ofRules.chains(),
    rules: (place) => ofRules.rules(place),
    set: (place) => ofSet(place.set).set(place),
    element: (place, key) => ofSet(place.set).element(place, key),
    table: async (place) => ((await ofRules.table(place)) ? whole : undefined),
    allElements: (place) => ofSet(place.set).allElements(place),
  };
}

/** The same, with what an earlier packet has left there. */
function withLearned(source: NftSource, learned: readonly Learned[]): NftSource {
  return {
    ...source,
    element: async (place, asked) => {
      const found = learned.find(
        ({ name, key }) => key && name === place.set && Buffer.compare(key, asked) === 0,
      );
      return found?.key ? { key: found.key, data: found.data } : source.element(place, asked);
    },
  };
}
