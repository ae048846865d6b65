/** `junction check` as people and scripts meet it, on machines that are made up. */
import { describe, expect, test } from 'vitest';
import { checkCommand } from '../../src/cli/checkCommand.ts';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import type { ValidConfig } from '../../src/config/effective.ts';
import { loadConfig } from '../../src/config/load.ts';
import { isValid } from '../../src/config/validate.ts';
import { FLAGS } from '../../src/config/table.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import { fakeMachine, type Lacks } from '../modes/prerequisites/fakeMachine.ts';
import { junction } from './junction.ts';

function configOf(...args: readonly string[]): ValidConfig {
  const parsed = parseCommandLine(args, FLAGS);
  if (!parsed.ok) throw new Error(parsed.problems.join('\n'));
  const loaded = loadConfig(parsed.value, () => '');
  if (!loaded.ok || !isValid(loaded.value.config)) throw new Error('not a configuration');
  return loaded.value.config;
}

async function check(
  lacks: Lacks,
  output: 'text' | 'json',
  ...args: readonly string[]
): Promise<{ code: number; out: string }> {
  return checkIn(undefined, lacks, output, ...args);
}

/** In a terminal of that width. */
async function checkIn(
  columns: number | undefined,
  lacks: Lacks,
  output: 'text' | 'json',
  ...args: readonly string[]
): Promise<{ code: number; out: string }> {
  let out = '';
  const write = (text: string): void => void (out += text);
  const stdio = { out: write, err: () => {}, painted: write };
  const options = { families: FAMILIES, output, columns };
  const code = await checkCommand(configOf(...args), stdio, options, fakeMachine(lacks));
  return { code, out };
}

describe('the table', () => {
  test('of a machine that has everything', async () => {
    const { code, out } = await check({}, 'text', '--proxy-mode=iptables');
    expect(code).toBe(0);
    const [header, ...rows] = out.split('\n');
    expect(header?.split(/ {2,}/)).toEqual(['WHAT', 'STATE', 'FOUND']);
    expect(rows.slice(-3)).toEqual(['', 'iptables mode can run here.', '']);
    expect(out).toMatch(/^capability NET_ADMIN +present +may change the network/m);
    expect(out).not.toContain('\u001b');
  });

  test('of one that lacks something says what to do, in lines that fit', async () => {
    const { code, out } = await check({ modules: ['ip_vs', 'dummy'] }, 'text', '--proxy-mode=ipvs');
    expect(code).toBe(1);
    expect(out.split('\n')[0]?.split(/ {2,}/)).toEqual(['WHAT', 'STATE', 'FOUND', 'WHAT TO DO']);
    expect(out).toMatch(/^kernel module ip_vs +missing +the kernel has no IPVS; .* {2,}modprobe ip_vs\./m);
    expect(out).toMatch(/^kernel module dummy +missing /m);
    expect(out).toMatch(/\nipvs mode cannot run here: 2 things are missing; 2 things were not tried\.\n$/);
    expect(Math.max(...out.split('\n').map(({ length }) => length))).toBeLessThan(170);
  });

  test.each([80, 100])('in a terminal of %d columns, what to do stands below', async (columns) => {
    const lacks = { modules: ['ip_vs', 'dummy'] };
    const { out } = await checkIn(columns, lacks, 'text', '--proxy-mode=ipvs');
    expect(out.split('\n').filter(({ length }) => length > columns)).toEqual([]);
    expect(out).toMatch(/^WHAT +STATE +FOUND$/m);
    expect(out).toMatch(/^kernel module ip_vs +missing .*\n(?: {20,}.*\n)* {2}modprobe ip_vs\./m);
    const words = (text: string): readonly string[] => text.split(/\s+/).sort();
    const wide = await check(lacks, 'text', '--proxy-mode=ipvs');
    expect(words(out)).toEqual(words(wide.out.replace('WHAT TO DO', '')));
    const fine = await checkIn(columns, {}, 'text');
    expect(fine.out.split('\n').filter(({ length }) => length > columns)).toEqual([]);
  });

  test('of one that lacks a nicety says for what it is needed, and ends well', async () => {
    const { code, out } = await check({ iptables: { refuses: ['-m recent'] } }, 'text');
    expect(code).toBe(0);
    expect(out).toMatch(/\(needed for Services with sessionAffinity:/);
    expect(out).toMatch(/\niptables mode can run here; 1 thing is only partly there\.\n$/);
  });
});

describe('nftables mode', () => {
  test('where everything is there', async () => {
    const { code, out } = await check({}, 'text', '--proxy-mode=nftables');
    expect(code).toBe(0);
    expect(out).toMatch(/^nftables, IPv4 +present +takes sets of several fields,/m);
    expect(out).toMatch(/^program nft +present +version 1\.0\.6$/m);
    expect(out).toMatch(/\nnftables mode can run here\.\n$/);
  });

  test('where a module is missing', async () => {
    const { code, out } = await check({ modules: ['nft_masq'] }, 'text', '--proxy-mode=nftables');
    expect(code).toBe(1);
    expect(out).toMatch(/^nftables: masquerading with random ports, IPv4 +missing +the kernel refuses it/m);
    expect(out).toMatch(/\nnftables mode cannot run here: 2 things are missing\.\n$/);
  });
});

describe('json', () => {
  test('has these fields', async () => {
    const { code, out } = await check({ capabilities: '0' }, 'json', '--proxy-mode=ipvs');
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
});

describe('settings that matter', () => {
  test('the scheduler', async () => {
    const { out } = await check({}, 'text', '--proxy-mode=ipvs', '--ipvs-scheduler=nosuch');
    expect(out).toMatch(/^IPVS scheduler nosuch +missing/m);
  });

  test('strict ARP', async () => {
    const { out } = await check({}, 'text', '--proxy-mode=ipvs', '--ipvs-strict-arp');
    expect(out).toMatch(/^sysctl net\.ipv4\.conf\.all\.arp_ignore +missing/m);
  });

  test('the layout', async () => {
    const { out } = await check({}, 'text', '--iptables-layout=classic');
    expect(out).toContain('physdev');
  });
});

describe('the command line', () => {
  test('a mode that nobody knows', async () => {
    const { code, err } = await junction('check', '--proxy-mode=userspace');
    expect(code).toBe(2);
    expect(err).toContain('userspace');
  });

  test('an output that nobody knows', async () => {
    expect(await junction('check', '--output=yaml')).toMatchObject({ code: 2 });
  });
});
