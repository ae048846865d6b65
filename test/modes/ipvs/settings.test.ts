import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { applyIpvsSysctls, applyTimeouts, ipvsSysctls } from '../../../src/modes/ipvs/settings.ts';
import type { Change, ChangeOutcome } from '../../../src/netlink/batch.ts';
import { createLog, type Log } from '../../../src/log/log.ts';
import { requestHex } from '../../system/support/bytes.ts';

const USUAL = {
  'net/ipv4/vs/conntrack': 1,
  'net/ipv4/vs/expire_nodest_conn': 1,
  'net/ipv4/vs/expire_quiescent_template': 1,
  'net/ipv4/ip_forward': 1,
};

function logInto(lines: string[]): Log {
  return createLog({ verbosity: 0, format: 'json', write: (line) => lines.push(line) });
}

describe('which sysctls', () => {
  const of = (strictARP: boolean, kernel: string): Readonly<Record<string, number>> =>
    Object.fromEntries(ipvsSysctls({ strictARP, kernel }));

  test('the usual', () => expect(of(false, '6.1.0-13-amd64')).toEqual(USUAL));

  test('with strict ARP', () => {
    expect(of(true, '6.1.0-13-amd64')).toEqual({
      ...USUAL,
      'net/ipv4/conf/all/arp_ignore': 1,
      'net/ipv4/conf/all/arp_announce': 2,
    });
  });

  test.each([
    ['3.10.0-1160.el7.x86_64', false],
    ['4.0.9', false],
    ['4.1.0', true],
    ['4.19.0-25-amd64', true],
    ['5.4.0-150-generic', true],
    ['5.8.18', true],
    ['5.9.0', false],
    ['5.10.0-28-amd64', false],
    ['6.12-rc1', false],
    ['unknown', false],
  ])('on kernel %s a reused port is told to be used at once: %s', (kernel, isTold) => {
    expect(of(false, kernel)).toEqual(isTold ? { ...USUAL, 'net/ipv4/vs/conn_reuse_mode': 0 } : USUAL);
  });
});

describe('applied', () => {
  let root: string;
  let lines: string[];
  const path = (name: string): string => join(root, name);
  const apply = (): void => applyIpvsSysctls({ strictARP: false, kernel: '6.1.0' }, logInto(lines), { root });

  beforeEach(() => {
    lines = [];
    root = mkdtempSync(join(tmpdir(), 'junction-'));
    for (const name of Object.keys(USUAL)) {
      mkdirSync(dirname(path(name)), { recursive: true });
      writeFileSync(path(name), '0\n');
    }
  });
  afterEach(() => rmSync(root, { recursive: true }));

  test('what differs is written, and said', () => {
    writeFileSync(path('net/ipv4/ip_forward'), '1\n');
    utimesSync(path('net/ipv4/ip_forward'), 0, 0);
    apply();
    for (const [name, value] of Object.entries(USUAL))
      expect(readFileSync(path(name), 'utf8').trim()).toBe(String(value));
    expect(statSync(path('net/ipv4/ip_forward')).mtimeMs).toBe(0);
    const names = lines.map((line): unknown => (JSON.parse(line) as Record<string, unknown>)['name']);
    expect(names).toEqual(Object.keys(USUAL).filter((name) => name !== 'net/ipv4/ip_forward'));
    lines.length = 0;
    apply();
    expect(lines).toEqual([]);
  });

  test('what the kernel lacks is fatal', () => {
    rmSync(path('net/ipv4/vs/conntrack'));
    expect(apply).toThrow(
      expect.objectContaining({
        code: 'SYSCTL_MISSING',
        message: expect.stringContaining('net/ipv4/vs/conntrack'),
      }),
    );
  });
});

describe('time-outs', () => {
  async function sent(tcp: number, tcpFin: number, udp: number, outcome: ChangeOutcome = { state: 'done' }) {
    const lines: string[] = [];
    const changes: Change[] = [];
    const channel = {
      apply: async (list: readonly Change[]) => {
        changes.push(...list);
        return list.map(() => outcome);
      },
      request: async () => Promise.reject(new Error('nothing is asked')),
      requestAll: async () => Promise.reject(new Error('nothing is asked')),
      dumpAll: async () => Promise.reject(new Error('nothing is read')),
    };
    await applyTimeouts(channel, 30, { tcp, tcpFin, udp }, logInto(lines));
    return { messages: changes.map(requestHex), lines };
  }

  test('none is set where none is given', async () => {
    expect(await sent(0, 0, 0)).toEqual({ messages: [], lines: [] });
  });

  test('one is set: the others are 0, which leaves them as they are', async () => {
    expect(await sent(900, 0, 300)).toEqual({
      messages: [
        '2c000000 1e000000 01000000 00000000 0c010000 08000400 84030000 08000500 00000000 08000600 2c010000',
      ],
      lines: [],
    });
  });

  test('a refusal is said, and is no reason not to serve', async () => {
    const { lines } = await sent(900, 0, 0, { state: 'refused', errno: 22, name: 'EINVAL' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('EINVAL');
  });
});
