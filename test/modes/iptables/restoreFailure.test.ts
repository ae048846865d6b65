import { describe, expect, it } from 'vitest';
import { around, failingLine } from '../../../src/modes/iptables/outcome.ts';

describe('the line that restore refused', () => {
  it.each([
    ['iptables-restore: line 5 failed', 5],
    ['iptables-restore: line 3 failed: No chain/target/match by that name.', 3],
    [
      'iptables-restore v1.8.9 (nf_tables): \nline 4: RULE_APPEND failed (No such file or directory): rule in chain A1',
      4,
    ],
    ['iptables-restore v1.8.9 (nf_tables): \nline 5: CHAIN_DEL failed (Device or resource busy): chain B', 5],
    [
      'iptables-restore v1.8.9 (legacy): unknown option "--bogus"\nError occurred at line: 7\nTry `iptables-restore -h',
      7,
    ],
    ["Bad argument `garbage'\nError occurred at line: 3\n", 3],
    ['iptables-restore: COMMIT expected at line 4', 4],
    ['Segmentation fault', undefined],
  ])('%j: %s', (output, line) => expect(failingLine(output, '')).toBe(line));

  it('is the jump, where nft notices its missing target only at COMMIT', () => {
    const input = '*nat\n:X - [0:0]\n-A X -j NOSUCH\n-A X -j ACCEPT\nCOMMIT\n';
    const output =
      "iptables-restore v1.8.9 (nf_tables): Chain 'NOSUCH' does not exist\nError occurred at line: 5";
    expect(failingLine(output, input)).toBe(3);
  });
});

it('shows the input around a line', () => {
  const input = 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine';
  expect(around(input, 5)).toBe(
    '  2: two\n  3: three\n  4: four\n> 5: five\n  6: six\n  7: seven\n  8: eight',
  );
  expect(around(input, 1)).toBe('> 1: one\n  2: two\n  3: three\n  4: four');
});
