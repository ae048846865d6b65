import { expect, test } from 'vitest';
import { type ConfigChange, diffConfig } from '../../src/config/effective.ts';
import { fromFile } from './given.ts';

test.each<[object, object, readonly ConfigChange[]]>([
  [{}, {}, []],
  [
    { oomScoreAdj: 1 },
    { oomScoreAdj: 2 },
    [{ path: 'oomScoreAdj', before: '1', after: '2', reload: 'restart' }],
  ],
  [
    { logging: { verbosity: 1 }, clusterCIDR: '10.0.0.0/8' },
    { logging: { verbosity: 4 }, clusterCIDR: '10.0.0.0/8,fd00::/8' },
    [
      { path: 'logging.verbosity', before: '1', after: '4', reload: 'live' },
      { path: 'clusterCIDR', before: '10.0.0.0/8', after: '10.0.0.0/8,fd00::/8', reload: 'live' },
    ],
  ],
  [
    { iptables: { syncPeriod: '1m' } },
    { iptables: { syncPeriod: '2m' } },
    [{ path: 'iptables.syncPeriod', before: '1m0s', after: '2m0s', reload: 'live' }],
  ],
  // What another mode's section says has no effect.
  [{ ipvs: { syncPeriod: '1m' } }, { ipvs: { syncPeriod: '2m' } }, []],
  [
    { mode: 'iptables' },
    { mode: 'nftables', nftables: { syncPeriod: '1m', masqueradeAll: true } },
    [
      { path: 'mode', before: 'iptables', after: 'nftables', reload: 'restart' },
      { path: 'iptables.masqueradeAll', before: 'false', after: 'true', reload: 'live' },
      { path: 'iptables.syncPeriod', before: '30s', after: '1m0s', reload: 'live' },
      { path: 'nodePortAddresses', before: '', after: 'primary', reload: 'live' },
    ],
  ],
  [
    { junction: { firewalld: false } },
    {},
    [{ path: 'junction.firewalld', before: 'false', after: 'true', reload: 'restart' }],
  ],
])('%j, then %j', (before, after, changes) => {
  expect(diffConfig(fromFile(before), fromFile(after))).toEqual(changes);
});
