/** A status with every field. */
import type { Status } from '../../src/explain/status.ts';

export const FULL_STATUS: Status = {
  version: '0.1.0',
  processId: 17,
  node: 'node1',
  mode: 'nftables',
  layout: 'current',
  networkNamespace: 'net:[4026531840]',
  startedAt: 1_790_000_000_000,
  now: 1_790_000_100_000,
  source: {
    kind: 'api',
    server: 'https://api.example:6443',
    lastEventAt: 1_790_000_090_000,
    reconnects: 2,
    resources: [
      {
        resource: 'services',
        hasListed: true,
        encoding: 'protobuf',
        failingSince: '2026-11-16T14:03:12Z',
        reason: 'silent',
      },
    ],
  },
  families: [
    {
      family: 'IPv4',
      isServed: true,
      services: 7,
      servicePorts: 8,
      endpoints: 17,
      lastSync: {
        at: 1_790_000_090_000,
        kind: 'incremental',
        cause: 'EndpointSlice shop/web-1',
        ms: 3,
        planMs: 1,
        writeMs: 2,
        commits: 1,
        objects: 4,
      },
      syncs: { full: 1, incremental: 5, nothing: 2, failed: 0 },
      lastVerification: { at: 1_790_000_080_000, ms: 4, isUnchanged: true },
      isNotified: true,
      refused: [{ servicePort: 'shop/web:http/TCP', error: 'no room' }],
      foreignChanges: {
        count: 1,
        byProgram: { nft: 1 },
        last: { at: 1_790_000_050_000, objects: ['table'], program: 'nft', repairedMs: 8 },
      },
    },
  ],
  leftOut: [{ family: 'IPv6', reason: 'the kernel has none', since: 1_790_000_000_000 }],
  conntrack: { count: 12, max: 262_144 },
  findings: [{ code: 'sync-late', severity: 'warning', text: 'a change waits', cure: 'junction doctor' }],
};
