/** What a start decides from its configuration, the node and the kernel, before anything is written. */
import { expect, test } from 'vitest';
import { LeftOutFamilies, primaryFamily } from '../../src/daemon/leftOutFamilies.ts';
import { warnOfInconsistencies } from '../../src/daemon/preparation.ts';
import { dialledAddresses } from '../../src/daemon/source.ts';
import { FAMILIES, parseIp } from '../../src/model/ip.ts';
import type { FamilyAnswer } from '../../src/modes/familyState.ts';
import { fromFlags, valid } from '../config/given.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { keptLog } from '../telemetry/http/support.ts';

test.each<[flags: readonly string[], said: readonly string[]]>([
  [
    ['--proxy-mode=iptables'],
    [
      '{"level":"warning","msg":"Kube-proxy configuration may be incomplete or incorrect","err":"nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using `--nodeport-addresses primary`"}',
    ],
  ],
  [['--proxy-mode=iptables', '--nodeport-addresses=primary'], []],
  [['--proxy-mode=nftables'], []],
  [
    ['--proxy-mode=nftables', '--nodeport-addresses=127.0.0.0/8,192.0.2.0/24'],
    [
      '{"level":"error","msg":"--nodeport-addresses includes localhost but localhost NodePorts are not supported","range":"127.0.0.0/8"}',
    ],
  ],
])('a configuration that is valid and may not fit: %j', (flags, said) => {
  const { log, lines } = keptLog();
  warnOfInconsistencies({ config: valid(fromFlags(...flags)), nodeName: 'node1', log }, FAMILIES);
  expect(lines).toEqual(said);
});

test.each([
  ['0.0.0.0', [], 'IPv4'],
  ['::', [], 'IPv4'],
  ['0.0.0.0', ['fd00::1', '192.0.2.1'], 'IPv6'],
  ['0.0.0.0', ['192.0.2.1', 'fd00::1'], 'IPv4'],
  ['::1', ['192.0.2.1'], 'IPv6'],
  ['192.0.2.7', ['fd00::1'], 'IPv4'],
] as const)('bind address %s, node addresses %j: primary family %s', (bind, ips, expected) => {
  expect(primaryFamily(bind, { ips: ips.flatMap((text) => parseIp(text) ?? []) })).toBe(expected);
});

test.each([
  ['https://203.0.113.1:6443', undefined, [{ ip: '203.0.113.1', port: 6443 }]],
  ['https://[2001:db8:0::1]/k8s', undefined, [{ ip: '2001:db8::1', port: 443 }]],
  ['http://203.0.113.1', undefined, [{ ip: '203.0.113.1', port: 80 }]],
  ['https://api.invalid', 'http://198.51.100.3:3128', [{ ip: '198.51.100.3', port: 3128 }]],
  ['https://localhost:6443', undefined, expect.arrayContaining([{ ip: '127.0.0.1', port: 6443 }])],
])('the API server %s by way of %s is dialled at', async (server, proxy, expected) => {
  const access = { server: new URL(server), proxy: proxy === undefined ? undefined : new URL(proxy) };
  expect(await dialledAddresses(access)).toEqual(expected);
});

test('a family that cannot be served is asked for until it works, and whatever is new is told', async () => {
  const absent: FamilyAnswer = { state: 'absent', reason: 'no table', remedy: '' };
  const open: FamilyAnswer = { state: 'unanswered', reason: 'the lock is held', remedy: '' };
  const answers: (FamilyAnswer | Error)[] = [absent, new Error('boom'), open, open, { state: 'works' }];
  const told: string[] = [];
  const { log, lines } = keptLog();
  const families = new LeftOutFamilies({
    families: [{ family: 'IPv6', answer: absent }],
    ask: async () => {
      const answer = answers.shift() ?? { state: 'works' };
      if (answer instanceof Error) throw answer;
      return answer;
    },
    onServed: () => told.push('works'),
    onAnswer: (_, { state }) => told.push(state),
    intervalMs: 1,
    log,
  });
  families.start();
  await eventually('it works', () => families.get('IPv6') === undefined);
  expect(told).toEqual(['absent', 'absent', 'unanswered', 'unanswered', 'works']);
  expect(lines.filter((line) => line.includes('still left out'))).toHaveLength(1);
  expect(lines.join()).toContain('"err":"boom"');
  await families.stop();
});
