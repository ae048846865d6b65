/** Chains as iptables lists them: what a packet may match is found, whatever stands in comments. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Chain, ChainReader } from '../../../src/modes/iptables/chains.ts';
import { parseSave } from './rules/tables.ts';
import { IptablesRules } from '../../../src/modes/iptables/walk.ts';
import { walkIptables } from './rules/textWalk.ts';
import { walkPacket } from '../../../src/modes/walk.ts';
import type { WalkResult } from '../../../src/modes/kernelRules.ts';
import type { Packet } from '../../../src/plan/decide.ts';
import { runToEnd } from '../../../src/time/timeSlice.ts';
import { ip } from './rules/rules.ts';

const HOST = { addresses: [ip('192.0.2.1')] };

function texts({ outcomes }: WalkResult): readonly string[] {
  return outcomes.flatMap(({ kind, path }) => [kind, ...path.map(({ ruleIndex }) => String(ruleIndex))]);
}

describe('only rules that may match are parsed, and none of those is missed', () => {
  const address = fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.10');
  const port = fc.constantFrom(80, 8080);
  const destination = fc.oneof(
    fc.constant(''),
    address.map((each) => `-d ${each}/32 `),
    address.map((each) => `! -d ${each}/32 `),
    fc.constant('-d 10.0.0.0/30 '),
    address.map((each) => `-s 198.51.100.0/24 -d ${each}/32 `),
    address.map((each) => `! -s 203.0.113.0/24 -d ${each}/32 `),
  );
  const comment = fc.constantFrom(
    '',
    '-m comment --comment "x -d 10.0.0.9/32 y" ',
    '-m comment --comment "x --dport 9 y" ',
    '-m comment --comment "say \\"--dport 9\\" " ',
    '-m comment --comment plain ',
  );
  const ports = fc.oneof(
    fc.constant(''),
    port.map((each) => `-m tcp --dport ${each} `),
    port.map((each) => `-m tcp ! --dport ${each} `),
    fc.constant('-m tcp --dport 80:90 '),
    fc.constant('-m multiport --dports 22,80 '),
  );
  const target = fc.constantFrom('-j DROP', '-j LOG --log-prefix "at --dport 9 "', '', '-j RETURN');
  const rule = fc
    .tuple(destination, comment, ports, target)
    .map(([to, text, at, goal]) => `${to}-p tcp ${text}${at}${goal}`.trimEnd());

  test('as whole chains', () => {
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), address, port, (rules, to, at) => {
        const packet = {
          source: ip('198.51.100.7'),
          destination: ip(to),
          protocol: 'TCP' as const,
          port: at,
          inInterface: 'eth0',
        };
        const saved = `*mangle\n:PREROUTING ACCEPT [0:0]\n${rules.map((each) => `[1:2] -A PREROUTING ${each}\n`).join('')}COMMIT\n`;
        const expected = texts(walkIptables(parseSave(saved), packet, HOST));
        const list = [
          '-P PREROUTING ACCEPT -c 0 0',
          ...rules.map((each) => `-A PREROUTING ${withCounters(each)}`),
        ];
        for (const text of [saved, `${list.join('\n')}\n`]) {
          const walked = walkText('mangle', text, packet);
          expect(texts(walked)).toEqual(expected);
          for (const { path } of walked.outcomes)
            for (const { text, packets } of path) {
              expect(rules).toContain(text);
              expect(packets).toBe(1);
            }
        }
      }),
    );
  });
});

/** As `-v -S` prints them: before the target. */
function withCounters(rule: string): string {
  const at = rule.search(/ -j [A-Z]+(?: --log-prefix .*)?$/);
  return at < 0 ? `${rule} -c 1 2` : `${rule.slice(0, at)} -c 1 2${rule.slice(at)}`;
}

function read(table: string, text: string): ReadonlyMap<string, Chain> {
  const reader = new ChainReader(table);
  reader.take(text);
  return reader.chains;
}

function walkText(table: string, text: string, packet: Packet): WalkResult {
  const chains = read(table, text);
  const rules = new IptablesRules({ tables: new Set([table]), read: () => chains });
  return runToEnd(walkPacket(rules, packet, HOST));
}

test('text may arrive in any pieces', () => {
  const saved =
    '*nat\n:A - [0:0]\n:INPUT DROP [5:6]\n[1:2] -A A -d fd00::1/128 -p tcp -j B\n[3:4] -A A\nCOMMIT\n';
  fc.assert(
    fc.property(fc.array(fc.nat(saved.length), { maxLength: 6 }), (cuts) => {
      const reader = new ChainReader('nat');
      const places = [0, ...cuts.sort((a, b) => a - b), saved.length];
      for (const [index, from] of places.entries()) reader.take(saved.slice(from, places[index + 1] ?? from));
      expect([...reader.chains.keys()]).toEqual(['A', 'INPUT']);
      expect(reader.chains.get('INPUT')).toMatchObject({ policy: 'DROP', policyPackets: 5 });
      const rules = reader.chains.get('A')?.rulesFor(ip('fd00::1'));
      expect(rules?.map((rule) => [rule.print(), rule.packets])).toEqual([
        ['-d fd00::1/128 -p tcp -j B', 1],
        ['', 3],
      ]);
      expect(reader.chains.get('A')?.rulesFor(ip('fd00::2'))).toHaveLength(1);
    }),
  );
});

test('what is no rule is noted when a packet comes to it', () => {
  const { notes } = walkText(
    'filter',
    '-P FORWARD ACCEPT -c 0 0\n-A FORWARD -m tcp --dport "open\n-A FORWARD -j DROP -j ACCEPT\n',
    { source: ip('10.0.0.1'), destination: ip('10.0.0.2'), protocol: 'TCP', port: 80, inInterface: 'eth0' },
  );
  expect(notes).toHaveLength(2);
  expect(notes.every((note) => note.startsWith('not evaluated'))).toBe(true);
});
