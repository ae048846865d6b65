import { describe, expect, test } from 'vitest';
import { probabilityBits, ruleKey } from '../../../../src/modes/iptables/rules/words.ts';
import { SAMPLES, toIpv6 } from './rules.ts';

describe('the same rule', () => {
  const table: readonly (readonly [ours: string, saved: string])[] = [
    ['-d 10.96.1.1 -j X', '-d 10.96.1.1/32 -j X'],
    ['! -s fd00::1 -j X', '! -s fd00::1/128 -j X'],
    ['-s fd00:0::1 -j X', '-s fd00::1/128 -j X'],
    ['-s 10.1.2.3/8 -j X', '-s 10.0.0.0/8 -j X'],
    ['-s 0.0.0.0/0 -j X', '-j X'],
    ['-d ::/0 -j X', '-j X'],
    [
      '-m comment --comment "a b" -m tcp -p tcp -d 1.2.3.4 --dport 80 ! -s 10.0.0.0/8 -i eth+ -j X',
      '! -s 10.0.0.0/8 -d 1.2.3.4/32 -i eth+ -p tcp -m comment --comment "a b" -m tcp --dport 80 -j X',
    ],
    [
      '-m recent --name L --set -m tcp -p tcp -j DNAT --to-destination 1.2.3.4:5',
      '-p tcp -m recent --set --name L --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 1.2.3.4:5',
    ],
    ['-m tcp -p tcp --dport 9 --sport 5 -j X', '-p tcp -m tcp --sport 5 --dport 9 -j X'],
    ['-p tcp --dport 9 -o eth0 -j X', '-o eth0 -p tcp -m tcp --dport 9 -j X'],
    ['-m comment --comment farm/barn -j X', '-m comment --comment "farm/barn" -j X'],
    ['-m mark ! --mark 0x00004000/0x00004000 -j X', '-m mark ! --mark 0x4000/0x4000 -j X'],
    ['-m mark --mark 0x0000000f/0xffffffff -j X', '-m mark --mark 0xf -j X'],
    ['-j MARK --or-mark 0x00004000', '-j MARK --set-xmark 0x4000/0x4000'],
    ['-j MARK --xor-mark 0x80000000', '-j MARK --set-xmark 0x80000000/0x0'],
    ['-j REJECT', '-j REJECT --reject-with icmp-port-unreachable'],
    ['-j REJECT', '-j REJECT --reject-with icmp6-port-unreachable'],
    ['-m nfacct --nfacct-name n -j X', '-m nfacct --nfacct-name  n -j X'],
    [
      '-m conntrack ! --ctstate DNAT,ESTABLISHED,RELATED',
      '-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT',
    ],
    [
      '-m statistic --mode random --probability 0.3333333333 -j X',
      '-m statistic --mode random --probability 0.33333333349 -j X',
    ],
    [
      '-m statistic --mode random --probability 0.0000099999 -j X',
      '-m statistic --mode random --probability 0.00001000008 -j X',
    ],
    ['-j DNAT --to-destination [fd00:0:0::1]:80', '-j DNAT --to-destination [fd00::1]:80'],
  ];
  test.each(table)('%s = %s', (ours, saved) => expect(ruleKey(ours)).toBe(ruleKey(saved)));
});

describe('not the same rule', () => {
  const table: readonly (readonly [string, string])[] = [
    ['-p tcp -j X', '-p tcp -m tcp -j X'],
    ['-m tcp -p tcp -m comment --comment c -j X', '-m comment --comment c -m tcp -p tcp -j X'],
    ['-s 1.2.3.4 -j X', '-d 1.2.3.4 -j X'],
    ['-s 1.2.3.4 -j X', '! -s 1.2.3.4 -j X'],
    ['-s 1.2.3.0/24 -j X', '-s 1.2.3.0/25 -j X'],
    ['-i eth0 -j X', '-i eth+ -j X'],
    ['-m tcp -p tcp --dport 80 -j X', '-m tcp -p tcp --dport 81 -j X'],
    ['-m tcp -p tcp --dport 80 -j X', '-m udp -p udp --dport 80 -j X'],
    ['-m comment --comment "a -j X"', '-m comment --comment a -j X'],
    ['-m addrtype --src-type LOCAL', '-m addrtype --dst-type LOCAL'],
    ['-m addrtype --src-type LOCAL', '-m addrtype ! --src-type LOCAL'],
    ['-m conntrack --ctstate NEW', '-m conntrack --ctstate NEW,DNAT'],
    ['-m mark --mark 0x1/0x1', '-m mark --mark 0x1'],
    ['-m recent --name L --set', '-m recent --name M --set'],
    ['-m recent --name L --rcheck --seconds 5', '-m recent --name L --rcheck --seconds 5 --reap'],
    ['-m physdev --physdev-is-in', '-m physdev ! --physdev-is-in'],
    ['-j MARK --or-mark 0x1', '-j MARK --xor-mark 0x1'],
    ['-j MASQUERADE', '-j MASQUERADE --random-fully'],
    ['-j REJECT', '-j REJECT --reject-with tcp-reset'],
    ['-j X', '-g X'],
    ['-j X', ''],
    ['-j LOG --log-prefix "a b"', '-j LOG --log-prefix a b'],
  ];
  test.each(table)('%s ≠ %s', (one, other) => expect(ruleKey(one)).not.toBe(ruleKey(other)));

  test('all the samples differ', () => {
    const keys = [...SAMPLES, ...SAMPLES.map(toIpv6)].map(({ text }) => ruleKey(text));
    expect(new Set(keys).size).toBe(
      new Set([...SAMPLES, ...SAMPLES.map(toIpv6)].map(({ text }) => text)).size - 1,
    );
  });
});

test('probabilities are multiples of 2^-31', () => {
  expect(probabilityBits('1.0000000000')).toBe(2 ** 31);
  expect(probabilityBits('0.5000000000')).toBe(2 ** 30);
  expect(probabilityBits('0.3333333333')).toBe(715_827_883);
});
