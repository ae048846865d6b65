/**
 * A switch between the modes nftables and ipvs, for which no kernel of the tests has everything: by the order of writes. What the
 * other mode left serves until every family has its own rules.
 */
import { expect, test } from 'vitest';
import { FAMILIES } from '../../src/model/ip.ts';
import { StaleObjects } from '../../src/modes/staleObjects.ts';
import { Faults } from '../contract/faults.ts';
import { memorySide } from '../contract/memory.ts';
import { World } from '../contract/world.ts';

const SERVICES = {
  IPv4: ['a/web 10.96.1.1 80@30080', 'a/web-1 of web 8080 | pod-a'],
  IPv6: ['a/web fd00:96::1 80@30080', 'a/web-1 of web 8080 | pod-a'],
} as const;

test.each(['nftables', 'ipvs'] as const)(
  'to %s: everything is written, and then the other mode goes',
  async (mode) => {
    const order: string[] = [];
    const stale = new StaleObjects(FAMILIES, async () => void order.push('the other mode goes'));
    for (const family of FAMILIES) {
      const world = new World(family, { localhostNodePorts: false });
      world.tell(SERVICES[family]);
      const faults = new Faults();
      faults.onWrite = () => order.push(family);
      const writer = await memorySide(mode, family).start(world, faults);
      await writer.sync(world.plan, world.unwritten);
      await stale.ready(family);
    }
    expect(order.indexOf('the other mode goes')).toBe(order.length - 1);
    expect(new Set(order)).toEqual(new Set([...FAMILIES, 'the other mode goes']));
  },
);

test('a family that cannot be written keeps what the other mode left', async () => {
  const order: string[] = [];
  const stale = new StaleObjects(FAMILIES, async () => void order.push('the other mode goes'));
  const world = new World('IPv4', { localhostNodePorts: false });
  world.tell(SERVICES.IPv4);
  const faults = new Faults();
  faults.refused = 'everything';
  const writer = await memorySide('ipvs', 'IPv4').start(world, faults);
  await stale.ready('IPv6');
  await expect(writer.sync(world.plan, world.unwritten)).rejects.toThrow('ENOMEM');
  expect(order).toEqual([]);
});
