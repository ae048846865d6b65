/** A look beside the syncs: what differs is noted, and the next sync repairs it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type ChainComparison,
  SaveChainReader,
  type TableDigests,
} from '../../../../src/modes/iptables/rules/chainReader.ts';
import type { ChainRef } from '../../../../src/modes/iptables/rules/fragment.ts';
import { isServiceChain } from '../../../../src/modes/iptables/rules/names.ts';
import { digestChain } from '../../../../src/modes/iptables/rules/parse.ts';
import { type Rule, type Table, TABLES } from '../../../../src/modes/iptables/rules/rule.ts';
import { FakeKernel, refusal } from './fakeKernel.ts';
import { WORLD_4 } from './goldenCluster.ts';
import { chainName, Harness } from './harness.ts';
import { LAYOUT_NAMES } from './layoutNames.ts';
import { TAMPERINGS } from './tamperings.ts';

/** As the reader by netlink: chain by chain, with others at work in between. */
class FakeDigests extends SaveChainReader {
  readonly #kernel: FakeKernel;
  #last: Promise<unknown> = Promise.resolve();
  /** Called before each chain is read. */
  beforeEach: (table: Table, chain: string) => Promise<void> = async () => undefined;

  /** The kernel has other bytes than we would send. */
  isOtherDialect = false;

  constructor(kernel: FakeKernel) {
    super(kernel);
    this.#kernel = kernel;
  }

  digestRule(rule: Rule): number {
    return digestChain('', [rule]);
  }

  /** One table after the other: syncs do not overlap. */
  digestTable(table: Table, whole: ReadonlySet<string>, byRule: ReadonlySet<string>): Promise<TableDigests> {
    const digests = this.#last.then(() => this.#read(table, whole, byRule));
    this.#last = digests;
    return digests;
  }

  async #read(table: Table, whole: ReadonlySet<string>, byRule: ReadonlySet<string>): Promise<TableDigests> {
    const chains = new Map<string, number>();
    const rules = new Map<string, readonly number[]>();
    for (const name of this.#kernel.chains(table)) {
      await this.beforeEach(table, name);
      const found = this.#kernel.tables.get(table)?.get(name)?.rules ?? [];
      if (byRule.has(name))
        rules.set(
          name,
          found.map((rule) => this.digestRule(rule)),
        );
      else if (whole.has(name)) chains.set(name, this.#digestOf(name, found));
    }
    return { isDormant: this.#kernel.dormant.has(table), chains, rules };
  }

  compareChains(): ChainComparison {
    const known = new Set<string>();
    const differing: ChainRef[] = [];
    return {
      add: ({ table, name, rules }) => {
        known.add(`${table} ${name}`);
        const compared = this.#last.then(async () => {
          await this.beforeEach(table, name);
          const found = this.#kernel.tables.get(table)?.get(name)?.rules;
          if (!found || this.#digestOf(name, found) !== digestChain(name, rules))
            differing.push({ table, chain: name });
        });
        this.#last = compared;
        return compared;
      },
      end: async () => {
        await this.#last;
        const all = TABLES.flatMap((table) => this.#kernel.chains(table).map((chain) => ({ table, chain })));
        const others = all.filter(
          ({ table, chain }) => isServiceChain(chain) && !known.has(`${table} ${chain}`),
        );
        return { differing, others };
      },
    };
  }

  #digestOf(name: string, rules: readonly Rule[]): number {
    return digestChain(name, rules) + (this.isOtherDialect ? 1 : 0);
  }
}

interface Looked {
  readonly harness: Harness;
  readonly digests: FakeDigests;
}

async function started(layout: Harness['layout']): Promise<Looked> {
  let digests = new FakeDigests(new FakeKernel());
  const harness = new Harness({ layout, reader: (kernel) => (digests = new FakeDigests(kernel)) });
  await harness.sync(WORLD_4);
  return { harness, digests };
}

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  test('nothing is noted where nothing differs, and nothing is printed', async () => {
    const { harness } = await started(layout);
    harness.kernel.forget();
    const { checked, suspects } = await harness.verify();
    expect(checked).toBeGreaterThan(20);
    expect(suspects).toBe(0);
    expect(harness.kernel).toMatchObject({ saves: 0, lists: [] });
    expect(await harness.sync()).toMatchObject({ commits: 0, repaired: [] });
  });

  test.each(TAMPERINGS)(
    '%s: found, and repaired by the next sync without a look at everything',
    async (_, tamper) => {
      const { harness } = await started(layout);
      const before = harness.meaning;
      tamper(harness.kernel);
      const { suspects } = await harness.verify();
      expect(suspects).toBeGreaterThan(0);
      harness.kernel.forget();
      const report = await harness.sync();
      expect(harness.meaning).toEqual(before);
      expect(report.repaired).not.toEqual([]);
      expect(harness.kernel.saves).toBe(0);
      expect((await harness.verify()).suspects).toBe(0);
    },
  );

  test('a chain in other bytes that mean the same is read, and stays', async () => {
    const { harness, digests } = await started(layout);
    digests.isOtherDialect = true;
    expect((await harness.verify()).suspects).toBeGreaterThan(10);
    harness.kernel.forget();
    expect(await harness.sync()).toMatchObject({ commits: 0, repaired: [] });
    expect(harness.kernel.lists).toContain(`nat ${chainName('SVC', 'shop/api')}`);
  });

  test('a dormant table is woken', async () => {
    const { harness } = await started(layout);
    harness.kernel.dormant.add('nat');
    expect((await harness.verify()).suspects).toBe(1);
    expect(await harness.sync()).toMatchObject({ repaired: ['table nat (made dormant)'] });
  });

  test('our own changes during a look are no suspects', async () => {
    const { harness, digests } = await started(layout);
    const lines = [
      'shop/api-1 of api 8080 | 10.244.0.10 node-a | 10.244.1.77 node-b',
      '- shop/cache',
      'shop/new 10.96.77.7 80@31001',
      'shop/new-1 of new 80 | 10.244.0.77 node-a',
      'shop/web-1 of web http:8080 | 10.244.0.8 node-a',
    ];
    let reads = 0;
    digests.beforeEach = async () => {
      if (++reads % 5 > 0) return;
      const line = lines.shift();
      if (line !== undefined) await harness.sync(line);
    };
    expect(await harness.verify()).toMatchObject({ suspects: 0 });
    expect(lines).toEqual([]);
    digests.beforeEach = async () => undefined;
    expect(await harness.verify()).toMatchObject({ suspects: 0 });
  });

  test('what another program changes besides is one', async () => {
    const { harness, digests } = await started(layout);
    let isDone = false;
    digests.beforeEach = async () => {
      if (isDone) return;
      isDone = true;
      await harness.sync('shop/api-1 of api 8080 | 10.244.0.10 node-a');
      harness.kernel.tamper('nat', '-D KUBE-SERVICES 1', '-F KUBE-MARK-MASQ');
    };
    const { suspects } = await harness.verify();
    expect(suspects).toBeGreaterThan(0);
    const before = await harness.fromScratch();
    await harness.sync();
    expect(harness.meaning).toEqual(before);
  });

  test('whatever syncs do while it looks, it finds nothing', async () => {
    const services = ['a', 'b', 'c'];
    const change = fc.record({
      at: fc.nat(60),
      service: fc.constantFrom(...services),
      endpoints: fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }),
      port: fc.constantFrom('80', '80@30500', '81'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 8 }), async (changes) => {
        const { harness, digests } = await started(layout);
        let reads = 0;
        digests.beforeEach = async () => {
          reads++;
          for (const { at, service, endpoints, port } of changes)
            if (at === reads)
              await harness.sync(
                `t/${service} 10.96.90.${services.indexOf(service) + 1} ${port}`,
                `t/${service}-1 of ${service} ${port.split('@')[0] ?? ''} ${[...new Set(endpoints)].map((each) => `| 10.244.9.${each} node-a`).join(' ')}`,
              );
        };
        expect(await harness.verify()).toMatchObject({ suspects: 0 });
        expect(harness.meaning).toEqual(await harness.fromScratch());
      }),
      { numRuns: 40 },
    );
  });

  test('a full sync during a look makes it void; while the kernel refuses something, a full sync looks', async () => {
    const { harness, digests } = await started(layout);
    digests.beforeEach = async () => {
      digests.beforeEach = async () => undefined;
      await harness.syncFull();
      harness.kernel.tamper('nat', '-F KUBE-SERVICES');
    };
    expect(await harness.verify()).toMatchObject({ suspects: 0 });
    harness.kernel.fault = ({ text }) => (text.includes('10.244.0.99') ? refusal() : undefined);
    await harness.sync('shop/bad 10.96.7.99 80', 'shop/bad-1 of bad 80 | 10.244.0.99 node-a');
    expect(await harness.verify()).toEqual({ checked: 0, suspects: 1 });
    expect((await harness.sync()).kind).toBe('full');
  });
});
