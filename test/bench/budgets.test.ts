/** How the daemon's log is read, and the table that comes out. */
import { describe, expect, test } from 'vitest';
import { DaemonLog, elapsedMs, parseLine } from '../../bench/budgets/daemonLog.ts';
import type { BudgetRun, Cluster, Measured } from '../../bench/budgets/messages.ts';
import { printBudgets } from '../../bench/budgets/report.ts';

const NOW = new Date(2026, 10, 16, 12, 0, 1).getTime();
const SYNCED =
  'I1116 12:00:00.250000   42 syncRunner.ts:347] "SyncProxyRules complete" ipFamily="IPv4" elapsed="12.5ms" fullSync=true';

describe('a line of the log', () => {
  test('its time, its message, its fields', () => {
    expect(parseLine(SYNCED, NOW)).toEqual({
      at: NOW - 750,
      message: 'SyncProxyRules complete',
      fields: { ipFamily: 'IPv4', elapsed: '12.5ms', fullSync: 'true' },
    });
  });

  test('of the day before, read just after midnight', () => {
    const midnight = new Date(2026, 10, 17, 0, 0, 0).getTime();
    expect(parseLine(SYNCED.replace('12:00:00.250', '23:59:59.900'), midnight)?.at).toBe(midnight - 100);
  });

  test.each(['', 'soak: refused', '    at main (file.ts:1)'])('%j is none', (text) => {
    expect(parseLine(text, NOW)).toBeUndefined();
  });
});

test('a line that is awaited is found before and after it is said, also in pieces', async () => {
  const log = new DaemonLog();
  const isSync = ({ message }: { readonly message: string }): boolean =>
    message === 'SyncProxyRules complete';
  const later = log.first(isSync, 5000);
  log.add(SYNCED.slice(0, 60));
  log.add(`${SYNCED.slice(60)}\n`);
  const found = await later;
  expect(found && elapsedMs(found)).toBe(12.5);
  expect(await log.first(isSync, 0)).toBe(found);
  expect(await log.first(() => false, 1)).toBeUndefined();
  expect(log.all('SyncProxyRules complete', 'IPv6')).toEqual([]);
});

const START = { forwardingMs: 800, forwardingCpuMs: 500, listedMs: 600, listedCpuMs: 300, firstSyncMs: 90 };
const MEMORY = { settled: 100 << 20, peak: 120 << 20 };
const RUN: BudgetRun = {
  cold: START,
  coldMemory: MEMORY,
  changeMs: [1, 2, 3],
  changeSyncMs: [1],
  restart: START,
  restartChangeMs: [4, 40, 5],
  busyVerifyMs: Number.NaN,
  verifyMs: Number.NaN,
  restartMemory: MEMORY,
  killed: START,
};

function measured(services: number, checkout: number, changeMs: number): Measured {
  const cluster: Cluster = services === 300 ? SMALL : LARGE;
  return { cluster, contentType: 'application/json', checkout, runs: [{ ...RUN, changeMs: [changeMs] }] };
}

const SMALL: Cluster = { mode: 'iptables-nft', sizes: { services: 300, endpoints: 3 } };
const LARGE: Cluster = { mode: 'iptables-nft', sizes: { services: 10_000, endpoints: 3 } };

test('both checkouts, their ratio, the budget, and the growth', () => {
  const all = [measured(300, 0, 10), measured(300, 1, 1), measured(10_000, 0, 100), measured(10_000, 1, 2)];
  const table = printBudgets({ names: ['before', 'now'], start: [], measured: all });
  expect(table).toMatch(/^IPTABLES-NFT, 10000 × 3 +BEFORE +NOW +RATIO +BUDGET$/m);
  expect(table).toMatch(
    /^one change: API server to notification +100 ms +2\.0 ms +0\.02× +3 ms, 3× of 300$/m,
  );
  expect(table).toMatch(/^ {2}longest wait of a change after that +40\.0 ms +40\.0 ms +1\.00× +50 ms$/m);
  expect(table).toMatch(/^full verification +– +– +– +0\.7 s, sliced$/m);
  expect(table).toMatch(/^one change, 10,000 over 300 services +10\.00× +2\.00× +3×$/m);
});

test('this checkout alone has no ratio', () => {
  const table = printBudgets({
    names: ['now'],
    start: [{ versionMs: [50], firstRequestMs: [90] }],
    measured: [measured(300, 0, 1)],
  });
  expect(table).toMatch(/^junction run, to its first request +90\.0 ms +– +100 ms$/m);
});
