/** Our own part alone: everything up to the finished messages, which go nowhere. */
import { objectKey } from '../../src/model/objects.ts';
import { IpvsServers } from '../../src/modes/ipvs/reconcile.ts';
import type { SyncReport } from '../../src/proxy/report.ts';
import { ruleOptions } from '../../src/modes/ipvs/rules/rules.ts';
import { NetlinkIpvsClient } from '../../src/modes/ipvs/client.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { TimeSlice } from '../../src/time/timeSlice.ts';
import { systemClock } from '../../src/time/systemClock.ts';
import { BlockMeter } from '../meters.ts';
import { fill, makeSlice, type Sizes, VIEW } from '../cluster.ts';
import { SwallowingChannels } from './swallow.ts';

export interface EncodeTimes {
  readonly coldMs: number;
  readonly coldBytes: number;
  readonly blockMs: number;
  readonly changeMs: readonly number[];
  readonly changeBytes: number;
}

const CHANGES = 300;

export async function encodeTimes(sizes: Sizes): Promise<EncodeTimes> {
  const channels = new SwallowingChannels();
  const proxy = openProxy(channels);
  fill(proxy, sizes);
  proxy.replan();
  const block = new BlockMeter();
  block.start();
  const started = performance.now();
  await proxy.sync();
  const coldMs = performance.now() - started;
  const blockMs = block.stop();
  const coldBytes = channels.takeBytes();
  const changeMs: number[] = [];
  for (let change = 1; change <= CHANGES; change++) {
    const slice = makeSlice((change * 37) % sizes.services, sizes.endpoints, change);
    const before = performance.now();
    proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
    await proxy.sync();
    changeMs.push(performance.now() - before);
  }
  return { coldMs, coldBytes, blockMs, changeMs, changeBytes: Math.round(channels.takeBytes() / CHANGES) };
}

function openProxy(channels: SwallowingChannels): Proxier {
  const writer = new IpvsServers({
    client: new NetlinkIpvsClient('IPv4', channels),
    rules: { sync: async () => NO_RULES, requestFull: () => {} },
    ruleOptions: ruleOptions(14, true),
    excludeCIDRs: [],
    drainLimitMs: 0,
    now: () => 0,
    timeSlice: new TimeSlice(systemClock),
  });
  return new Proxier({
    family: 'IPv4',
    settings: VIEW,
    writer: {
      sync: (plan, dirty) => writer.sync(plan, dirty, { scheduler: 'rr', nodeIps: [], nodePortIps: [] }),
      requestFull: () => writer.requestFull(),
    },
  });
}

const NO_RULES: SyncReport = {
  kind: 'nothing',
  commits: 0,
  objects: 0,
  refused: new Map(),
  repaired: [],
  retryAfterMs: undefined,
  counts: {},
};
