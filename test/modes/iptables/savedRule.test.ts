import { describe, expect, it } from 'vitest';
import { savedRuleExists } from '../../../src/modes/iptables/rules/parse.ts';

const saved = `*nat
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-X ! -s 10.0.0.0/8 -d 1.2.3.4/32 -p tcp -m tcp --dport 80 -j ACCEPT
-A KUBE-MARK -j MARK --set-xmark 0x4000/0x4000
-A KUBE-6 -d fd00::1/128 -j ACCEPT
-A KUBE-Q -m comment --comment "say \\"hi\\"" -j ACCEPT
COMMIT
`;

describe('a rule among the saved', () => {
  it.each([
    ['PREROUTING', ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'], true],
    ['PREROUTING', ['-j', 'KUBE-SERVICES', '-m', 'comment', '--comment', 'kubernetes service portals'], true],
    ['PREROUTING', ['-j', 'KUBE-SERVICES'], false],
    ['PRE', ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'], false],
    [
      'KUBE-X',
      ['-p', 'tcp', '-m', 'tcp', '--dport', '80', '!', '-s', '10.0.0.0/8', '-d', '1.2.3.4', '-j', 'ACCEPT'],
      true,
    ],
    [
      'KUBE-X',
      ['-p', 'tcp', '-m', 'tcp', '--dport', '80', '-s', '10.0.0.0/8', '!', '-d', '1.2.3.4', '-j', 'ACCEPT'],
      false,
    ],
    [
      'KUBE-X',
      ['-p', 'tcp', '-m', 'tcp', '--dport', '80', '!', '-s', '1.2.3.4', '-d', '10.0.0.0/8', '-j', 'ACCEPT'],
      false,
    ],
    ['KUBE-MARK', ['-j', 'MARK', '--set-xmark', '0x00004000/0x00004000'], true],
    ['KUBE-6', ['-d', 'fd00::1', '-j', 'ACCEPT'], true],
    ['KUBE-Q', ['-m', 'comment', '--comment', 'say "hi"', '-j', 'ACCEPT'], true],
  ] as const)('%s %j: %s', (chain, args, expected) =>
    expect(savedRuleExists(saved, chain, args)).toBe(expected),
  );
});
