/** What the benchmarks and the soak refuse to start with. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  BadArgument,
  choiceOption,
  countsOption,
  numberOption,
  refuseUnknown,
} from '../../bench/arguments.ts';

const built = (name: string): string => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));

describe('a bad argument ends a program before it does anything, with one line', () => {
  test.each([
    ['bench.js', '--bogus', '--bogus: no such option; expected --sizes, --variant, --rewrite-up-to'],
    ['bench.js', 'iptables --sizes abc', '--sizes abc: expected whole numbers with commas between them, '],
    ['bench.js', 'iptables --variant new', '--variant new: expected nft or legacy'],
    ['bench.js', 'iptables --rewrite-up-to all', '--rewrite-up-to all: expected a number'],
    ['bench.js', 'nftables --processes 1k', '--processes 1k: expected whole numbers'],
    ['bench.js', 'ipvs --flows 3', '--flows: no such option; expected --sizes, --endpoints, --repetitions'],
    ['bench.js', 'sizing --sizes 100', '--sizes 100: expected SERVICESxENDPOINTS'],
    ['bench.js', 'sizing --modes userspace', '--modes userspace: expected some of nftables,iptables-nft'],
    ['bench.js', 'conntrack --flows many', '--flows many: expected a number'],
    ['bench.js', 'api --min-sync-period soon', '--min-sync-period soon: expected a number'],
    [
      'bench.js',
      'budgets --clusters ipvs:10x3',
      '--clusters ipvs:10x3: expected MODE:SERVICESxENDPOINTS with nft',
    ],
    [
      'bench.js',
      'budgets --clusters nftables:0x3',
      '--clusters nftables:0x3: expected MODE:SERVICESxENDPOINTS',
    ],
    ['bench.js', 'budgets --content-types yaml', '--content-types yaml: expected json, protobuf or both'],
    [
      'bench.js',
      'budgets --baseline nothing',
      '--baseline nothing: expected a built checkout of Junction, or a ',
    ],
    ['bench.js', 'winkernel', 'there is no benchmark winkernel; --help lists them'],
    ['soak.js', '--bogus', '--bogus: no such option; expected --modes, --minutes, --slots, --seed, --log'],
    ['soak.js', '--modes ipvs', '--modes ipvs: expected some of nftables,iptables-netlink,iptables-restore,'],
    ['soak.js', '--minutes two', '--minutes two: expected a number, 0 or more'],
    ['soak.js', '--log', '--log: expected a value behind it'],
  ])('%s %s', (program, args, line) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [built(program), ...args.split(' ')], {
      encoding: 'utf8',
    });
    expect({ status, stdout, lines: stderr.split('\n') }).toEqual({
      status: 2,
      stdout: '',
      lines: [expect.stringContaining(line), ''],
    });
  });
});

describe('known options', () => {
  test('with values, and flags without', () => {
    expect(
      refuseUnknown(['--sizes', '3', '--pages', '--rate', '-1'], ['--sizes', '--rate'], ['--pages']),
    ).toBe(undefined);
  });

  test.each([
    [['--sizes', '--rate', '3'], '--sizes: expected a value behind it'],
    [['--sizes', '3', '4'], '4: no such option; expected --sizes, --rate'],
    [['--sizes=3'], '--sizes=3: no such option; expected --sizes, --rate'],
  ])('%j', (args, message) => {
    expect(() => refuseUnknown(args, ['--sizes', '--rate'])).toThrow(new BadArgument(message));
  });
});

describe('values', () => {
  test('counts; 0 is none', () => {
    expect(countsOption(['--sizes', '5,10,0'], '--sizes', '1')).toEqual([5, 10]);
    expect(countsOption(['--sizes', '0'], '--sizes', '1')).toEqual([]);
    expect(countsOption([], '--sizes', '1,2')).toEqual([1, 2]);
  });

  test.each(['', 'abc', '1,', '1.5', '-1', 'NaN'])('no counts: "%s"', (text) => {
    expect(() => countsOption(['--sizes', text], '--sizes', '1')).toThrow(BadArgument);
  });

  test('numbers', () => {
    expect(numberOption(['--minutes', '0.5'], '--minutes', 2)).toBe(0.5);
    expect(numberOption([], '--minutes', 2)).toBe(2);
  });

  test.each(['', 'abc', '-1', 'Infinity'])('no number: "%s"', (text) => {
    expect(() => numberOption(['--minutes', text], '--minutes', 2)).toThrow(BadArgument);
  });

  test('one of several; the first is the default', () => {
    expect(choiceOption([], '--variant', ['nft', 'legacy'])).toBe('nft');
    expect(choiceOption(['--variant', 'legacy'], '--variant', ['nft', 'legacy'])).toBe('legacy');
  });
});
