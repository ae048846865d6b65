import { describe, expect, test } from 'vitest';
import { appendLine, chainLine, printMark, printRule } from '../../../../src/modes/iptables/rules/print.ts';
import type { Rule } from '../../../../src/modes/iptables/rules/rule.ts';
import { SAMPLES, toIpv6 } from './rules.ts';

describe('printing', () => {
  test.each(SAMPLES.map(({ text, rule }) => [text, rule] as const))('%s', (text, rule) => {
    expect(printRule(rule)).toBe(text);
  });

  test.each(SAMPLES.map(toIpv6).map(({ text, rule }) => [text, rule] as const))('IPv6: %s', (text, rule) => {
    expect(printRule(rule)).toBe(text);
  });

  test('lines of a restore', () => {
    expect(chainLine('KUBE-FORWARD')).toBe(':KUBE-FORWARD - [0:0]');
    expect(appendLine('KUBE-FORWARD', { matches: [], target: { kind: 'drop' } })).toBe(
      '-A KUBE-FORWARD -j DROP',
    );
    expect(appendLine('KUBE-FORWARD', { matches: [], target: undefined })).toBe('-A KUBE-FORWARD');
  });

  test('marks have eight digits, the highest bit included', () => {
    expect([1, 0x4000, 1 << 31, 0xffff_ffff].map(printMark)).toEqual([
      '0x00000001',
      '0x00004000',
      '0x80000000',
      '0xffffffff',
    ]);
  });
});

describe('text that could change the meaning of a restore is refused', () => {
  test.each(['', 'a"b', String.raw`a\b`, 'a\nCOMMIT', 'a`b', 'café', 'x'.repeat(256), '$(reboot)'])(
    'as a comment: %j',
    (text) => {
      const rule = { matches: [{ kind: 'comment', text }], target: undefined } as const;
      expect(() => printRule(rule)).toThrow(JSON.stringify(text));
    },
  );

  const named: readonly (readonly [string, (name: string) => Rule])[] = [
    ['an interface', (name) => ({ matches: [{ kind: 'inInterface', name, not: false }], target: undefined })],
    ['a list', (name) => ({ matches: [{ kind: 'recentSet', name }], target: undefined })],
    ['a counter', (name) => ({ matches: [{ kind: 'nfacct', name }], target: undefined })],
    ['a chain', (chain) => ({ matches: [], target: { kind: 'jump', chain } })],
    ['a destination', (to) => ({ matches: [], target: { kind: 'dnat', to } })],
  ];
  test.each(named)('as the name of %s', (_, make) => {
    for (const name of ['', '-j', '!', 'a b', 'a"', 'a\n-A INPUT']) {
      expect(() => printRule(make(name))).toThrow(JSON.stringify(name));
    }
  });
});
