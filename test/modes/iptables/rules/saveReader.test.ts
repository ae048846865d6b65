import { describe, expect, test } from 'vitest';
import {
  digestChain,
  IN_PLACE,
  type ParsedChain,
  parseSave,
  SaveReader,
  type Tables,
  type WantedChains,
} from '../../../../src/modes/iptables/rules/parse.ts';

const SVC = 'KUBE-SVC-ABCDEFGHIJKLMNOP';
const SEP = 'KUBE-SEP-ABCDEFGHIJKLMNOP';
const SAVE = `# Generated
*nat
:PREROUTING ACCEPT [1:60]
:KUBE-SERVICES - [0:0]
:${SVC} - [0:0]
:${SEP} - [0:0]
[2:120] -A PREROUTING -j KUBE-SERVICES
[0:0] -A KUBE-SERVICES -d 10.96.0.1/32 -j ${SVC}
[3:180] -A ${SVC} -m comment --comment "shop/web -> 10.244.0.1:80" -j ${SEP}
[4:240] -A ${SEP} -s 10.244.0.1/32 -j MARK --or-mark 0x4000
[5:300] -A ${SEP} -p tcp -m tcp -j DNAT --to-destination 10.244.0.1:80
COMMIT
`;

/** A firewall's, and kubelet's, which has chains of names that we use too. */
const OTHERS = `
*filter
:INPUT DROP [0:0]
:KUBE-FIREWALL - [0:0]
:MY-FIREWALL - [0:0]
-A INPUT -m comment --comment "it's \\"ours\\"" -p tcp -m tcp --dport 22 -j MY-FIREWALL
-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP
-A MY-FIREWALL -s 10.1.0.0/16 -m limit --limit 5/min -j LOG --log-prefix "in: "
COMMIT
*mangle
:KUBE-KUBELET-CANARY - [0:0]
COMMIT
`;

function read(text: string, pieceLength: number, wanted: WantedChains = new Set()): Tables {
  const reader = new SaveReader();
  reader.wanted = wanted;
  for (let at = 0; at < text.length; at += pieceLength) {
    for (const _ of reader.take(text.slice(at, at + pieceLength)));
  }
  return reader.end();
}

function chainOf(tables: Tables, name: string): ParsedChain {
  const chain = tables.get('nat')?.get(name);
  if (!chain) throw new Error(`no chain ${name}`);
  return chain;
}

function wantedOf(...names: readonly string[]): WantedChains {
  const tables = parseSave(SAVE);
  return new Set(names.map((name) => digestChain(name, chainOf(tables, name).rules)));
}

describe('what is read', () => {
  test.each([
    ['others', OTHERS],
    ['services', SAVE],
  ])('is what the whole text says, however it is cut: %s', (_, text) => {
    const whole = parseSave(text);
    for (const length of [1, 7, 64, 1000, text.length]) expect(read(text, length)).toEqual(whole);
    expect(read(text.trimEnd(), 64)).toEqual(whole);
  });

  test.each([
    ['a cut', SAVE.slice(0, -20)],
    ['an undeclared chain', SAVE.replace(`:${SEP} - [0:0]\n`, '')],
    ['a deletion', SAVE.replace('[2:120] -A', '-D')],
    ['a table in a table', SAVE.replace('COMMIT', '*filter')],
  ])('%s is refused, in the same words', (_, text) => {
    let message = '';
    try {
      parseSave(text);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain('line');
    expect(() => read(text, 100)).toThrow(message.replace(/^ParseError: /, ''));
  });
});

describe('chains that are as they should be', () => {
  test('are not kept', () => {
    const tables = read(SAVE, 50, wantedOf(SVC, SEP));
    expect(chainOf(tables, SVC)).toBe(IN_PLACE);
    expect(chainOf(tables, SEP)).toBe(IN_PLACE);
    expect(chainOf(tables, 'KUBE-SERVICES')).toEqual(chainOf(parseSave(SAVE), 'KUBE-SERVICES'));
  });

  test('are kept when they are shared', () => {
    const tables = read(SAVE, 50, wantedOf('KUBE-SERVICES', 'PREROUTING'));
    expect(tables).toEqual(parseSave(SAVE));
  });

  test.each([
    ['another rule', SAVE.replace('10.244.0.1:80\nCOMMIT', '10.244.0.2:80\nCOMMIT')],
    ['a rule less', SAVE.replace(/.*-j DNAT.*\n/, '')],
    ['a rule more', SAVE.replace('COMMIT', `[0:0] -A ${SEP} -j RETURN\nCOMMIT`)],
    ['the rules of another chain', SAVE.replaceAll(SEP, 'KUBE-SEP-ABCDEFGHIJKLMNOZ')],
    [
      'a rule that comes later',
      SAVE.replace('COMMIT', `-A KUBE-SERVICES -j RETURN\n-A ${SEP} -j RETURN\nCOMMIT`),
    ],
  ])('are kept when they are not: %s', (_, text) => {
    const tables = read(text, 50, wantedOf(SEP));
    expect([...(tables.get('nat') ?? [])].filter(([name]) => name.startsWith('KUBE-SEP-'))).not.toEqual([]);
    for (const [name, chain] of tables.get('nat') ?? []) {
      if (name.startsWith('KUBE-SEP-')) expect(chain).not.toBe(IN_PLACE);
    }
  });
});
