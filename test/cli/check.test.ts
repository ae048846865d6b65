/** `junction check` on machines that are made up. How it looks: golden/check.txt. */
import { describe, expect, test } from 'vitest';
import { checkCommand } from '../../src/cli/checkCommand.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { fromFlags, valid } from '../config/given.ts';
import { fakeMachine, type Lacks } from '../modes/prerequisites/fakeMachine.ts';
import { captured, type Run } from './junction.ts';

function check(lacks: Lacks, flags: readonly string[], columns?: number, output = 'text'): Promise<Run> {
  const options = { families: FAMILIES, output, columns };
  return captured((to) => checkCommand(valid(fromFlags(...flags)), to, options, fakeMachine(lacks)));
}

test.each<readonly [string, Lacks, readonly string[], number, readonly RegExp[]]>([
  [
    'a nicety is missing: what needs it, and it ends well',
    { iptables: { refuses: ['-m recent'] } },
    [],
    0,
    [
      /\(needed for Services with sessionAffinity:/,
      /\niptables mode can run here; 1 thing is only partly there\.\n$/,
    ],
  ],
  [
    'nftables mode',
    {},
    ['--proxy-mode=nftables'],
    0,
    [
      /^nftables, IPv4 +present +takes sets of several fields,/m,
      /^program nft +present +version 1\.0\.6$/m,
      /\nnftables mode can run here\.\n$/,
    ],
  ],
  [
    'nftables mode without a module',
    { modules: ['nft_masq'] },
    ['--proxy-mode=nftables'],
    1,
    [
      /^nftables: masquerading with random ports, IPv4 +missing +the kernel refuses it/m,
      /\nnftables mode cannot run here: 2 things are missing\.\n$/,
    ],
  ],
  ['the scheduler', {}, ['--proxy-mode=ipvs', '--ipvs-scheduler=x'], 1, [/^IPVS scheduler x +missing/m]],
  [
    'strict ARP',
    {},
    ['--proxy-mode=ipvs', '--ipvs-strict-arp'],
    1,
    [/^sysctl net\.ipv4\.conf\.all\.arp_ignore +missing/m],
  ],
  ['the layout', {}, ['--iptables-layout=classic'], 0, [/physdev/]],
])('%s', async (_, lacks, flags, code, expected) => {
  const run = await check(lacks, flags);
  expect(run.code).toBe(code);
  for (const text of expected) expect(run.out).toMatch(text);
});

describe('in a terminal', () => {
  test.each([80, 100, 170])('of %d columns lines fit, and nothing is left out', async (columns) => {
    const lacks = { modules: ['ip_vs', 'dummy'] };
    const { out } = await check(lacks, ['--proxy-mode=ipvs'], columns);
    expect(out.split('\n').filter(({ length }) => length > columns)).toEqual([]);
    const words = (text: string): readonly string[] => text.replace('WHAT TO DO', '').split(/\s+/).sort();
    expect(words(out)).toEqual(words((await check(lacks, ['--proxy-mode=ipvs'])).out));
    const fine = await check({}, [], columns);
    expect(fine.out.split('\n').filter(({ length }) => length > columns)).toEqual([]);
  });
});

test('JSON has these fields', async () => {
  const { code, out } = await check({ capabilities: '0' }, ['--proxy-mode=ipvs'], undefined, 'json');
  expect(code).toBe(1);
  expect(JSON.parse(out)).toEqual({
    mode: 'ipvs',
    canRun: false,
    verdict: 'no',
    summary: 'ipvs mode cannot run here: 1 thing is missing.',
    checks: [
      {
        subject: 'capability NET_ADMIN',
        state: 'missing',
        needed: 'always',
        found: 'this process may not change the network',
        remedy: expect.stringMatching(/^Run as root/),
      },
    ],
  });
});
