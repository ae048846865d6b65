import { field } from '../entry.ts';
import { BOOL, DURATION, INT } from '../scalarKinds.ts';

export const PROCESS = {
  title: 'Process and connection tracking',
  fields: [
    field('oomScoreAdj', INT, {
      default: -999,
      flag: { name: 'oom-score-adj' },
      keepsZero: true,
      help: 'how soon the kernel kills the process for memory, -1000 (never) to 1000',
    }),
    field('conntrack.maxPerCore', INT, {
      default: 32_768,
      flag: { name: 'conntrack-max-per-core' },
      keepsZero: true,
      help: 'connections to track, per CPU; 0 leaves the limit alone and ignores conntrack.min',
    }),
    field('conntrack.min', INT, {
      default: 131_072,
      flag: { name: 'conntrack-min' },
      keepsZero: true,
      help: 'connections to track at least, however few CPUs there are',
    }),
    field('conntrack.tcpEstablishedTimeout', DURATION, {
      default: 86_400_000,
      flag: { name: 'conntrack-tcp-timeout-established' },
      keepsZero: true,
      help: 'after which an idle TCP connection is forgotten; 0 leaves it alone',
    }),
    field('conntrack.tcpCloseWaitTimeout', DURATION, {
      default: 3_600_000,
      flag: { name: 'conntrack-tcp-timeout-close-wait' },
      keepsZero: true,
      help: 'after which a half-closed TCP connection is forgotten; 0 leaves it alone',
    }),
    field('conntrack.tcpBeLiberal', BOOL, {
      default: false,
      flag: { name: 'conntrack-tcp-be-liberal' },
      help: 'do not take TCP packets outside of the window for invalid; false leaves the setting alone',
    }),
    field('conntrack.udpTimeout', DURATION, {
      default: 0,
      flag: { name: 'conntrack-udp-timeout' },
      help: 'after which an unanswered UDP flow is forgotten; 0 leaves it alone',
    }),
    field('conntrack.udpStreamTimeout', DURATION, {
      default: 0,
      flag: { name: 'conntrack-udp-timeout-stream' },
      help: 'after which an answered UDP flow is forgotten; 0 leaves it alone',
    }),
    field('configSyncPeriod', DURATION, {
      default: 900_000,
      flag: { name: 'config-sync-period' },
      help: 'how often everything that the API server has told is gone through again',
      ignored:
        'objects of the API server are cached and not delivered again; the sync period of the mode says how often rules are compared with the kernel',
    }),
  ],
  flags: [],
} as const;
