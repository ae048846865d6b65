/** In which order a full sync writes, and what packets meet meanwhile. */
import { describe, expect, test } from 'vitest';
import { LAYOUT_NAMES } from './layoutNames.ts';
import type { Tables } from '../../../../src/modes/iptables/rules/parse.ts';
import { walkIptables, type IptablesPacket } from '../../../../src/modes/iptables/rules/walk.ts';
import { ip } from '../../../plan/given.ts';
import { Harness } from './harness.ts';
import { WORLD_4 } from './goldenCluster.ts';

const HOST = { addresses: [ip('192.0.2.10')] };

const DESTINATIONS: readonly (readonly [string, number, IptablesPacket['protocol']])[] = [
  ['10.96.0.10', 53, 'UDP'],
  ['10.96.0.10', 53, 'TCP'],
  ['10.96.7.7', 80, 'TCP'],
  ['198.51.100.20', 80, 'TCP'],
  ['192.0.2.10', 30080, 'TCP'],
  ['10.96.6.6', 80, 'TCP'],
  ['198.51.100.40', 80, 'TCP'],
  ['192.0.2.10', 30081, 'TCP'],
  ['10.96.8.8', 443, 'TCP'],
  ['198.51.100.50', 443, 'TCP'],
  ['10.96.9.9', 8080, 'TCP'],
  ['10.96.5.6', 6379, 'TCP'],
  ['10.96.5.5', 9000, 'TCP'],
  ['10.96.8.9', 9000, 'SCTP'],
];
const SOURCES: readonly (readonly [string, string | undefined])[] = [
  ['10.244.0.99', 'cni0'],
  ['192.0.2.10', undefined],
  ['203.0.113.9', 'eth0'],
];
const PACKETS: readonly IptablesPacket[] = DESTINATIONS.flatMap(([destination, port, protocol]) =>
  SOURCES.map(([source, inInterface]) => ({
    source: ip(source),
    destination: ip(destination),
    protocol,
    port,
    inInterface,
  })),
);

/** Where each packet goes, in the order of PACKETS. */
function outcomes(tables: Tables): readonly string[] {
  return PACKETS.map((packet) => {
    const { outcomes: found, notes } = walkIptables(tables, packet, HOST, { record: false });
    expect(notes).toEqual([]);
    const texts = found.map((each) =>
      each.kind === 'forward'
        ? `forward ${each.to}:${each.port} ${each.masqueraded ? 'masqueraded ' : ''}${each.probability.toFixed(3)}`
        : each.kind,
    );
    return [...new Set(texts)].sort().join(', ');
  });
}

describe.each(LAYOUT_NAMES)('layout %s', (layout) => {
  test('a cold start: no packet meets half a service', async () => {
    const harness = new Harness({ layout });
    const moments: (readonly string[])[] = [];
    harness.kernel.chainsPerRestore = 4;
    harness.kernel.watch = (tables) => moments.push(outcomes(tables));
    await harness.sync(WORLD_4);
    const last = moments.at(-1) ?? [];
    expect(moments.length).toBeGreaterThan(8);
    expect(last.filter((text) => text.startsWith('forward')).length).toBeGreaterThan(20);
    for (const moment of moments) {
      for (const [index, text] of moment.entries()) {
        // Not yet: as if there were no service, or its refusal stands before its way.
        if (text !== 'pass' && text !== 'drop' && text !== 'reject') expect(text).toBe(last[index]);
      }
    }
  });

  test('a restart: packets of services that did not change go on as they did', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    const before = outcomes(harness.kernel.tables);
    const again = harness.restarted();
    const moments: (readonly string[])[] = [];
    again.kernel.watch = (tables) => moments.push(outcomes(tables));
    await again.sync(
      'shop/new 10.96.0.99 80',
      'shop/new-1 of new 80 | 10.244.0.99',
      '- shop/old',
      'shop/api-1 of api 8080 | 10.244.0.10 node-a | 10.244.1.77 node-b',
    );
    const after = outcomes(again.kernel.tables);
    expect(moments.length).toBeGreaterThan(0);
    for (const moment of moments)
      for (const [index, text] of moment.entries()) expect([before[index], after[index]]).toContain(text);
  });

  test('another layout: every packet that was served is served all the while, at the right place', async () => {
    const harness = new Harness({ layout });
    await harness.sync(WORLD_4);
    const before = outcomes(harness.kernel.tables);
    const switched = harness.restarted({ layout: layout === 'current' ? 'classic' : 'current' });
    const moments: (readonly string[])[] = [];
    switched.kernel.watch = (tables) => moments.push(outcomes(tables));
    await switched.sync();
    expect(outcomes(switched.kernel.tables)).toEqual(before);
    const plain = (text: string): string => text.replaceAll('masqueraded ', '');
    for (const moment of moments)
      for (const [index, text] of moment.entries()) {
        if ((before[index] ?? '').startsWith('forward')) expect(plain(text)).toBe(plain(before[index] ?? ''));
      }
  });

  test('restores of some hundred chains', async () => {
    const harness = new Harness({ layout });
    const many = Array.from({ length: 700 }, (_, n) => [
      `x/s${n} 10.97.${n >> 8}.${n & 255} 80`,
      `x/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255}`,
    ]).flat();
    await harness.sync(...many);
    const sizes = harness.kernel.restores.map(
      ({ text }) => text.split('\n').filter((line) => line.startsWith(':')).length,
    );
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
    expect(sizes.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(1400);
  });

  test('a thousand chains of services that are gone are deleted in such restores too', async () => {
    const harness = new Harness({ layout });
    const many = Array.from({ length: 600 }, (_, n) => [
      `x/s${n} 10.97.${n >> 8}.${n & 255} 80@${20000 + n} etp=Local lb=198.18.${n >> 8}.${n & 255}`,
      `x/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255}`,
    ]).flat();
    await harness.sync(...many);
    const again = harness.restarted({ layout: layout === 'current' ? 'classic' : 'current' });
    const report = await again.sync(...many.map((line) => `- ${line.split(' ')[0]}`), WORLD_4);
    expect(report.refused.size).toBe(0);
    expect(again.meaning).toEqual(await again.fromScratch());
    expect(again.kernel.attempts.length).toBe(again.kernel.restores.length);
  });
});

test('a client may ask for everything at once', async () => {
  const harness = new Harness();
  harness.kernel.chainsPerRestore = Number.POSITIVE_INFINITY;
  const many = Array.from({ length: 700 }, (_, n) => [
    `x/s${n} 10.97.${n >> 8}.${n & 255} 80`,
    `x/s${n}-1 of s${n} 80 | 10.244.${n >> 8}.${n & 255}`,
  ]).flat();
  await harness.sync(...many);
  expect(harness.kernel.restores.length).toBeLessThanOrEqual(5);
});

test('nothing to serve: only what is always there', async () => {
  const harness = new Harness();
  await harness.sync();
  expect(harness.kernel.chains('nat').filter((name) => name.startsWith('KUBE-'))).toEqual([
    'KUBE-MARK-MASQ',
    'KUBE-NODEPORTS',
    'KUBE-POSTROUTING',
    'KUBE-SERVICES',
  ]);
  expect(harness.kernel.rulesOf('nat', 'KUBE-SERVICES')).toHaveLength(1);
});
