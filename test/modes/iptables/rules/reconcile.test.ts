/** Starts, restarts, switches of layout, and what others do to the rules meanwhile. */
import { describe, expect, test } from 'vitest';
import { TAMPERINGS } from './tamperings.ts';
import { LAYOUT_NAMES } from './layoutNames.ts';
import { cidr, VIEW } from '../../../plan/given.ts';
import { FakeKernel } from './fakeKernel.ts';
import { FOREIGN, KUBELET } from './foreign.ts';
import { chainName, Harness } from './harness.ts';
import { WORLD_4 } from './goldenCluster.ts';

/** Without the rules and chains that are ours. */
function foreignPart(kernel: FakeKernel): readonly string[] {
  return kernel.text.split('\n').filter((line) => !/KUBE-(?!KUBELET|MARK-DROP|FIREWALL)/.test(line));
}

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  test('a cold start writes everything', async () => {
    const harness = new Harness({ layout });
    const report = await harness.sync(WORLD_4);
    expect(report.kind).toBe('full');
    expect(report.refused.size).toBe(0);
    expect(harness.kernel.rulesOf('nat', 'PREROUTING')).toHaveLength(1);
  });

  test('a restart writes nothing', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    const again = harness.restarted();
    const report = await again.sync();
    expect(again.kernel.attempts).toEqual([]);
    expect(report).toMatchObject({ kind: 'full', commits: 0, objects: 0 });
  });

  test('a restart after changes writes the differences', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    const again = harness.restarted();
    await again.sync(
      '- shop/cache',
      '- shop/cache-1',
      'shop/api-1 of api 8080 | 10.244.0.10 node-a | 10.244.1.10 node-b | 10.244.1.99 node-b',
      'shop/new 10.96.99.1 80',
    );
    expect(
      again.kernel.sent.filter((line) => /kube\/dns|shop\/web|shop\/edge|shop\/mixed/.test(line)),
    ).toEqual([]);
    expect(again.meaning).toEqual(await again.fromScratch());
  });

  test('after an incremental sync a restart agrees', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    await harness.sync('- shop/edge', 'shop/idle-1 of idle 8080 | 10.244.0.77 node-a');
    const again = harness.restarted();
    await again.sync();
    expect(again.kernel.attempts).toEqual([]);
  });

  test('the other layout leaves exactly its own', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    const other = layout === 'current' ? 'classic' : 'current';
    const switched = harness.restarted({ layout: other });
    await switched.sync();
    expect(switched.meaning).toEqual(await switched.fromScratch());
    const back = switched.restarted({ layout });
    await back.sync();
    expect(back.meaning).toEqual(await back.fromScratch());
  });

  test('the other layout, with services coming and going at the same time', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    const switched = harness.restarted({ layout: layout === 'current' ? 'classic' : 'current' });
    await switched.sync(
      '- shop/web',
      '- shop/web-1',
      '- shop/edge-1',
      'shop/new 10.96.0.99 80@30999 lb=198.51.100.99',
      'shop/new-1 of new 80 | 10.244.0.99',
    );
    expect(switched.meaning).toEqual(await switched.fromScratch());
  });

  test.each([
    ['a firewall and docker', FOREIGN],
    ['kubelet', KUBELET],
  ])('others’ chains and rules stay as they are: %s', async (_, text) => {
    const kernel = new FakeKernel(text);
    const before = foreignPart(kernel);
    const harness = new Harness({ layout, kernel });
    await harness.sync(WORLD_4);
    const ours =
      /block incoming localnet|dropping marked packets|-j KUBE-FIREWALL|:KUBE-FIREWALL|:KUBE-MARK-DROP|KUBE-MARK-DROP -j MARK/;
    const strip = (lines: readonly string[]): readonly string[] => lines.filter((line) => !ours.test(line));
    expect(strip(foreignPart(kernel))).toEqual(strip(before));
    await harness.sync('- shop/web', '- shop/api');
    await harness.syncFull();
    expect(strip(foreignPart(kernel))).toEqual(strip(before));
  });

  test('what kubelet has is not written twice', async () => {
    const harness = new Harness({ layout, kernel: new FakeKernel(KUBELET) });
    await harness.sync(WORLD_4);
    const firewall = harness.kernel.rulesOf('filter', 'KUBE-FIREWALL');
    expect(firewall.filter((rule) => rule.includes('block incoming localnet'))).toHaveLength(1);
    const jumps = harness.kernel.rulesOf('filter', 'INPUT').filter((rule) => rule === '-j KUBE-FIREWALL');
    expect(jumps).toHaveLength(1);
    expect(harness.kernel.rulesOf('nat', 'KUBE-MARK-DROP')).toHaveLength(1);
  });

  test('kubelet’s KUBE-MARK-DROP outlives our layout', async () => {
    const harness = new Harness({ layout, kernel: new FakeKernel(KUBELET) });
    await harness.sync(WORLD_4);
    const switched = harness.restarted({ layout: layout === 'current' ? 'classic' : 'current' });
    await switched.sync();
    expect(switched.kernel.chains('nat')).toContain('KUBE-MARK-DROP');
    expect(switched.kernel.chains('filter')).toContain('KUBE-FIREWALL');
  });
});

describe('counters', () => {
  function countAll(kernel: FakeKernel): void {
    let packets = 0;
    kernel.tables = new Map(
      [...kernel.tables].map(([table, chains]) => [
        table,
        new Map(
          [...chains].map(([name, chain]) => [
            name,
            {
              ...chain,
              rules: chain.rules.map((rule) => ({
                ...rule,
                counters: { packets: ++packets, bytes: packets * 60 },
              })),
            },
          ]),
        ),
      ]),
    );
  }

  test('of rules that stay survive a restart that rewrites their chain', async () => {
    const harness = new Harness();
    await harness.sync('a/b 10.96.0.1 80', 'a/b-1 of b 80 | 10.244.0.1 | 10.244.0.2');
    countAll(harness.kernel);
    const svc = chainName('SVC', 'a/b');
    const before = harness.kernel.tables.get('nat')?.get(svc)?.rules[0]?.counters;
    expect(before).toBeDefined();
    const again = harness.restarted();
    await again.sync('a/b-1 of b 80 | 10.244.0.1 | 10.244.0.3');
    const rules = again.kernel.tables.get('nat')?.get(svc)?.rules ?? [];
    expect(rules[0]?.counters).toEqual(before);
    expect(rules[2]?.counters).toBeUndefined();
  });
});

describe('somebody has been at our rules', () => {
  for (const layout of LAYOUT_NAMES) {
    test.each(TAMPERINGS)(`layout ${layout}: %s`, async (_, tamper) => {
      const harness = new Harness({ layout });
      await harness.sync(WORLD_4);
      const before = harness.meaning;
      tamper(harness.kernel);
      const report = await harness.syncFull();
      expect(report.refused.size).toBe(0);
      expect(harness.meaning).toEqual(before);
      await harness.syncFull();
      expect(harness.kernel.attempts).toEqual([]);
    });
  }

  test.each(['full', 'incremental'] as const)(
    'while a sync (%s) is under way: the next one looks',
    async (kind) => {
      const harness = new Harness();
      await harness.sync(WORLD_4);
      if (kind === 'full') harness.kernel.tamper('nat', '-F KUBE-MARK-MASQ');
      harness.kernel.watch = () => {
        harness.kernel.watch = () => {};
        harness.kernel.tamper('filter', '-F KUBE-FORWARD');
        harness.requestFull();
      };
      const first = kind === 'full' ? await harness.syncFull() : await harness.sync('- shop/api-1');
      expect(first.kind).toBe(kind);
      expect((await harness.sync()).kind).toBe('full');
      expect(harness.meaning).toEqual(await harness.fromScratch());
      expect((await harness.sync()).kind).toBe('nothing');
    },
  );

  test('a doubled rule does not tear the service’s rules out of order', async () => {
    const harness = new Harness({ layout: 'classic' });
    await harness.sync('a/b 10.96.0.1 80', 'a/b-1 of b 80 | 10.244.0.1');
    const before = harness.meaning;
    const [mark = ''] = harness.kernel.rulesOf('nat', 'KUBE-SERVICES');
    expect(mark).toContain('KUBE-MARK-MASQ');
    harness.kernel.tamper('nat', `-I KUBE-SERVICES 3 ${mark}`);
    await harness.syncFull();
    expect(harness.meaning).toEqual(before);
  });

  test('a foreign chain that jumps to one of ours keeps that one alive', async () => {
    const harness = new Harness();
    const gone = chainName('SVC', 'a/b');
    await harness.sync(
      'a/b 10.96.0.1 80',
      'a/b-1 of b 80 | 10.244.0.1',
      'c/d 10.96.0.2 80',
      'c/d-1 of d 80 | 10.244.0.2',
    );
    harness.kernel.tamper(
      'nat',
      ':HOSTPORTS - [0:0]',
      '-A HOSTPORTS -j KUBE-MARK-MASQ',
      `-A HOSTPORTS -j ${gone}`,
    );
    const report = await harness.sync('- a/b', '- a/b-1', 'c/d-1 of d 80 | 10.244.0.3');
    expect(report.refused.size).toBe(0);
    expect(harness.kernel.rulesOf('nat', 'HOSTPORTS')).toEqual(['-j KUBE-MARK-MASQ', `-j ${gone}`]);
    expect(harness.kernel.chains('nat')).toContain(chainName('SEP', 'c/d', '10.244.0.3:80'));
    expect(harness.kernel.chains('nat')).not.toContain(chainName('SEP', 'c/d', '10.244.0.2:80'));
    expect(harness.kernel.rulesOf('nat', 'KUBE-SERVICES')).toHaveLength(2);
  });
});

describe('settings that every rule depends on', () => {
  test('a new zone alone writes nothing', async () => {
    const harness = new Harness();
    await harness.sync(WORLD_4);
    harness.cluster.setView({ ...VIEW, zone: 'elsewhere' });
    const report = await harness.sync();
    expect(report.kind).toBe('full');
    expect(harness.kernel.attempts).toEqual([]);
  });

  test('other pods', async () => {
    const harness = new Harness();
    await harness.sync(WORLD_4);
    harness.cluster.setView({ ...VIEW, localDetector: { kind: 'cidr', cidr: cidr('10.99.0.0/16') } });
    await harness.sync();
    expect(harness.meaning).toEqual(await harness.fromScratch());
    expect(harness.kernel.text).not.toContain('! -s 10.244.0.0/16');
  });

  for (const layout of LAYOUT_NAMES) {
    test.each([
      ['another mark', { masqueradeMark: 0x8000 }],
      ['node ports on some addresses', { nodePortIps: [] }],
      ['counters', { nfacct: { invalidDropped: true, localhostNodePorts: true } }],
      ['a liberal conntrack', { dropInvalid: false }],
    ])(`layout ${layout}: a restart with %s`, async (_, options) => {
      const harness = new Harness({ layout });
      await harness.sync(WORLD_4);
      const again = harness.restarted({ options });
      await again.sync();
      expect(again.meaning).toEqual(await again.fromScratch());
    });
  }
});

describe('a large cluster', () => {
  const many = (name: string, address: string, count: number): readonly string[] => [
    `big/${name} ${address} 80`,
    `big/${name}-1 of ${name} 80 ${Array.from({ length: count }, (_, n) => `| 10.244.${n >> 8}.${n & 255}`).join(' ')}`,
  ];

  test('crossing the threshold rewrites only what changed', async () => {
    const harness = new Harness();
    await harness.sync(...many('one', '10.96.0.1', 998));
    expect(harness.kernel.text).toContain('"big/one -> 10.244.0.1:80"');
    const report = await harness.sync(...many('two', '10.96.0.2', 3));
    expect(report).toMatchObject({ kind: 'incremental', commits: 1, counts: { chains: 4 } });
    expect(harness.kernel.sent.join('\n')).not.toContain(' -> ');
    expect(harness.kernel.sent.join('\n')).not.toContain('big/one');
  });

  test('a service that still has its comments loses them when it changes', async () => {
    const harness = new Harness();
    await harness.sync(...many('one', '10.96.0.1', 2), ...many('two', '10.96.0.2', 996));
    await harness.sync(...many('three', '10.96.0.3', 4));
    await harness.sync(...many('one', '10.96.0.1', 1));
    expect(harness.kernel.sent.join('\n')).not.toContain(' -> ');
    expect(harness.kernel.chains('nat')).not.toContain(chainName('SEP', 'big/one', '10.244.0.1:80'));
  });

  test('a full sync rewrites all without comments', async () => {
    const harness = new Harness();
    await harness.sync(...many('one', '10.96.0.1', 998));
    await harness.sync(...many('two', '10.96.0.2', 3));
    await harness.syncFull();
    expect(harness.kernel.text).not.toContain(' -> ');
    expect(harness.meaning).toEqual(await harness.fromScratch());
  });

  test('a thousand endpoints are not too many', async () => {
    const harness = new Harness();
    await harness.sync(...many('one', '10.96.0.1', 1000));
    expect(harness.kernel.text).toContain(' -> ');
  });
});
