/** What has no bytes: `iptables-restore` writes it, or says what is wrong with it. */
import { describe, expect, test } from 'vitest';
import { RuleEncoder } from '../../../../src/modes/iptables/netlink/encodeRule.ts';
import { parseRule } from '../../../../src/modes/iptables/rules/parseRule.ts';
import { tokenize } from '../../../../src/modes/iptables/rules/parse.ts';
import type { Match, Rule } from '../../../../src/modes/iptables/rules/rule.ts';

const encoder = new RuleEncoder({ family: 'IPv4' });

function ruleOf(text: string): Rule {
  return parseRule(tokenize(text) ?? []);
}

describe('not encoded', () => {
  test.each([
    ['another program’s match', '-m limit --limit 5/min -j ACCEPT'],
    ['another program’s target', '-j LOG --log-prefix x'],
    ['a goto', '-g X'],
    ['an outgoing interface', '-o eth0 -j ACCEPT'],
    ['a comment with quotes', String.raw`-m comment --comment "a \"b\"" -j ACCEPT`],
    ['no address at all', '! -s 0.0.0.0/0 -j ACCEPT'],
    ['any interface', '-i + -j ACCEPT'],
    ['an interface whose name is too long', '-i abcdefghijklmnop -j ACCEPT'],
    ['a chain whose name is too long', `-j ${'C'.repeat(29)}`],
    ['two sources', '-s 10.0.0.1 -s 10.0.0.2 -j ACCEPT'],
    ['an address of the other family', '-d fd00::1 -j ACCEPT'],
    ['a destination of the other family', '-p tcp -j DNAT --to-destination [fd00::1]:80'],
    ['a destination that is a range', '-p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.9:80'],
    ['ports that are a range', '-p tcp -j DNAT --to-destination 10.0.0.1:80-90'],
    ['a list of a short name', '-m recent --name LIST --set'],
    ['a set whose number is not known', '-m set --match-set some-set dst -j ACCEPT'],
    ['a counter whose name is too long', `-m nfacct --nfacct-name ${'n'.repeat(32)}`],
  ])('%s', (_, text) => expect(encoder.encode(ruleOf(text))).toBeUndefined());

  test.each<readonly [string, readonly Match[]]>([
    ['a port without a protocol', [{ kind: 'destinationPort', port: 80 }]],
    ['a port of a bare protocol', [bare('tcp'), { kind: 'destinationPort', port: 80 }]],
    ['two protocols', [bare('tcp'), bare('udp')]],
    ['no probability', [{ kind: 'statistic', probability: 'often' }]],
  ])('%s', (_, matches) => expect(encoder.encode({ matches, target: undefined })).toBeUndefined());
});

function bare(protocol: 'tcp' | 'udp'): Match {
  return { kind: 'protocol', protocol, bare: true };
}

test('a rule that could not be encoded leaves nothing behind', () => {
  const rule = ruleOf('-d 10.0.0.1 -j ACCEPT');
  const before = encoder.encode(rule)?.bytes.slice();
  expect(encoder.encode(ruleOf('-m tcp -p tcp --dport 80 -s 10.0.0.1 -g X'))).toBeUndefined();
  expect(encoder.encode(rule)?.bytes).toEqual(before);
});

test('the kernel is told the protocol', () => {
  expect(encoder.encode(ruleOf('-p udp -j ACCEPT'))?.compat).toEqual({ protocol: 17, isInverted: false });
  expect(encoder.encode(ruleOf('-j ACCEPT'))?.compat).toBeUndefined();
});

/** What iptables 1.8.9 sends, by strace: this kernel may lack the match. */
test.each([
  [
    'IPv4',
    '-m ipvs --vaddr 203.0.113.23 --vproto tcp --vport 80 -j DROP',
    'cb00711700000000000000000000000000',
  ],
  [
    'IPv6',
    '-m ipvs --vaddr 2001:db8::7 --vproto tcp --vport 80 -j DROP',
    '20010db800000000000000000000000700',
  ],
] as const)('a virtual server of IPVS, %s', (family, text, address) => {
  const bytes = new RuleEncoder({ family }).encode(ruleOf(text))?.bytes ?? new Uint8Array();
  const structure = `${address.slice(0, 32)}${'ff'.repeat(16)}005006000000000f`;
  expect(Buffer.from(bytes).toString('hex')).toContain(
    `697076730000000008000200000000002c000300${structure}`,
  );
});
