/** Packets through tables that other programs have rules in too. */
import { describe, expect, test } from 'vitest';
import { parseSave } from '../../../src/modes/iptables/rules/parse.ts';
import type { IptablesPacket } from '../../../src/modes/iptables/rules/walk.ts';
import { walkIptables } from './rules/textWalk.ts';
import type { WalkResult } from '../../../src/modes/walk.ts';
import { ip } from './rules/rules.ts';

const HOST = { addresses: [ip('192.0.2.1'), ip('10.0.0.1')] };
const FROM_POD: IptablesPacket = {
  source: ip('10.0.0.9'),
  destination: ip('172.30.0.1'),
  protocol: 'TCP',
  port: 80,
  inInterface: 'cni0',
};
const FROM_NODE: IptablesPacket = { ...FROM_POD, source: ip('192.0.2.1'), inInterface: undefined };
const TO_NODE: IptablesPacket = { ...FROM_POD, destination: ip('192.0.2.1') };

/** What our rules do with the packet: nat to one endpoint, and accept what is marked. */
const OURS = `
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
[7:420] -A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
[5:300] -A KUBE-SERVICES -d 172.30.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
[5:300] -A KUBE-SVC-AAAAAAAAAAAAAAAA -p tcp -j DNAT --to-destination 10.0.0.7:8080
COMMIT
`;

const BUILT_IN: Readonly<Record<string, readonly string[]>> = {
  raw: ['PREROUTING', 'OUTPUT'],
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  security: ['INPUT', 'FORWARD', 'OUTPUT'],
};

/** Lines as `TABLE CHAIN RULE`; those of nat and filter go before ours, and `:CHAIN DROP` sets a policy. */
function tablesWith(lines: readonly string[]): string {
  let text = OURS;
  const own = new Map<string, string[]>();
  for (const line of lines.toReversed()) {
    const [table = '', chain = '', ...rule] = line.split(' ');
    const appended = `-A ${chain} ${rule.join(' ')}\n`;
    if (table !== 'nat' && table !== 'filter') own.set(table, [appended, ...(own.get(table) ?? [])]);
    else if (chain.startsWith(':'))
      text = text.replace(new RegExp(`\\n${chain} \\w+ `), `\n${chain} ${rule[0]} `);
    else {
      const declared = text.includes(`:${chain} `) ? '' : `:${chain} - [0:0]\n`;
      text = text.replace(new RegExp(`(\\*${table}\\n(?::.*\\n)*)`), `$1${declared}${appended}`);
    }
  }
  for (const [table, rules] of own) {
    const heads = (BUILT_IN[table] ?? []).map((chain) => `:${chain} ACCEPT [0:0]\n`).join('');
    text += `*${table}\n${heads}${rules.join('')}COMMIT\n`;
  }
  return text;
}

function walk(lines: readonly string[], packet: IptablesPacket = FROM_POD): WalkResult<string> {
  return walkIptables(parseSave(tablesWith(lines)), packet, HOST);
}

function verdicts({ outcomes }: WalkResult<string>): readonly string[] {
  return outcomes.map((outcome) => {
    switch (outcome.kind) {
      case 'forward':
        return `${outcome.to}:${outcome.port}${outcome.masqueraded ? ' masq' : ''}`;
      case 'pass':
        return outcome.masqueraded ? 'pass masq' : 'pass';
      default:
        return outcome.kind;
    }
  });
}

function lastStep({ outcomes: [outcome] }: WalkResult<string>): string {
  const step = outcome?.path.at(-1);
  return `${step?.hook}: ${step?.chain} ${step?.text}${step?.isForeign ? ', foreign' : ''}`;
}

test('without other programs: forwarded, by rules of ours with their counters', () => {
  const result = walk([]);
  expect(verdicts(result)).toEqual(['10.0.0.7:8080']);
  expect(result.notes).toEqual([]);
  expect(
    result.outcomes[0]?.path.map(({ chain, packets, isForeign }) => [chain, packets, isForeign]),
  ).toEqual([
    ['PREROUTING', 7, undefined],
    ['KUBE-SERVICES', 5, undefined],
    ['KUBE-SVC-AAAAAAAAAAAAAAAA', 5, undefined],
    ['FORWARD', undefined, undefined],
  ]);
});

describe('a rule that drops or refuses ends the way, whatever table it is in', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['raw PREROUTING -s 10.0.0.0/24 -j DROP', 'drop', 'raw prerouting: PREROUTING -s 10.0.0.0/24 -j DROP'],
    ['mangle PREROUTING -p tcp -j DROP', 'drop', 'mangle prerouting: PREROUTING -p tcp -j DROP'],
    ['mangle FORWARD -d 10.0.0.7 -j DROP', 'drop', 'mangle forward: FORWARD -d 10.0.0.7 -j DROP'],
    ['filter FORWARD -j DROP', 'drop', 'filter forward: FORWARD -j DROP'],
    [
      'filter FORWARD -j REJECT --reject-with tcp-reset',
      'reject',
      'filter forward: FORWARD -j REJECT --reject-with tcp-reset',
    ],
    ['security FORWARD -j DROP', 'drop', 'security forward: FORWARD -j DROP'],
    ['mangle POSTROUTING -j DROP', 'drop', 'mangle postrouting: POSTROUTING -j DROP'],
    ['nat PREROUTING -j DROP', 'drop', 'nat prerouting: PREROUTING -j DROP'],
  ];
  test.each(cases)('%s', (line, verdict, step) => {
    const result = walk([line]);
    expect(verdicts(result)).toEqual([verdict]);
    expect(lastStep(result)).toBe(`${step}, foreign`);
  });

  test('in a chain of their own', () => {
    const result = walk(['filter FORWARD -j FIREWALL', 'filter FIREWALL -p tcp -m tcp --dport 8080 -j DROP']);
    expect(verdicts(result)).toEqual(['drop']);
    expect(lastStep(result)).toBe('filter forward: FIREWALL -m tcp -p tcp --dport 8080 -j DROP, foreign');
  });

  test('from the node: raw OUTPUT, before nat', () => {
    expect(verdicts(walk(['raw OUTPUT -d 172.30.0.1 -j DROP'], FROM_NODE))).toEqual(['drop']);
    expect(verdicts(walk(['raw OUTPUT -d 10.0.0.7 -j DROP'], FROM_NODE))).toEqual(['10.0.0.7:8080']);
    expect(verdicts(walk(['filter OUTPUT -d 10.0.0.7 -j DROP'], FROM_NODE))).toEqual(['drop']);
  });

  test('a policy is the last step', () => {
    const result = walk(['filter :FORWARD DROP']);
    expect(verdicts(result)).toEqual(['drop']);
    expect(lastStep(result)).toBe('filter forward: FORWARD policy drop, foreign');
    expect(
      verdicts(walk(['filter :FORWARD DROP', 'mangle PREROUTING -j MARK --set-xmark 0x4000/0x4000'])),
    ).toEqual(['10.0.0.7:8080']);
  });
});

describe('what other programs do to the packet', () => {
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    ['without connection tracking nat does not see it', ['raw PREROUTING -p tcp -j CT --notrack'], 'pass'],
    ['the same by its older name', ['raw PREROUTING -j NOTRACK'], 'pass'],
    ['a helper changes nothing', ['raw PREROUTING -j CT --helper ftp'], '10.0.0.7:8080'],
    ['accepted in nat before us', ['nat PREROUTING -d 172.30.0.0/16 -j ACCEPT'], 'pass'],
    ['returned before us', ['nat PREROUTING -j RETURN'], 'pass'],
    [
      'rewritten before us',
      ['nat PREROUTING -p tcp -j DNAT --to-destination 9.9.9.9:1 --persistent'],
      '9.9.9.9:1',
    ],
    ['redirected', ['nat PREROUTING -p tcp -j REDIRECT --to-ports 3128'], '192.0.2.1:3128'],
    [
      'its source rewritten',
      ['nat POSTROUTING -j SNAT --to-source 203.0.113.7:1024-65535'],
      '10.0.0.7:8080 masq',
    ],
    [
      'masqueraded',
      ['nat POSTROUTING -s 10.0.0.0/8 -j MASQUERADE --to-ports 1024-2048'],
      '10.0.0.7:8080 masq',
    ],
    [
      'marks of other bits',
      [
        'mangle PREROUTING -j MARK --set-xmark 0x5/0xff',
        'mangle PREROUTING -j MARK --set-xmark 0x0/0x1',
        'filter FORWARD -m mark --mark 0x4 -j DROP',
      ],
      'drop',
    ],
    [
      'logs pass',
      ['filter FORWARD -j LOG --log-prefix x', 'filter FORWARD -m limit --limit 3/s -j LOG'],
      '10.0.0.7:8080',
    ],
    [
      'goto does not come back',
      ['filter FORWARD -g X', 'filter FORWARD -j DROP', 'filter X -p udp -j DROP'],
      '10.0.0.7:8080',
    ],
    [
      'ACCEPT in FORWARD is not the end of other tables',
      ['filter FORWARD -j ACCEPT', 'security FORWARD -j DROP'],
      'drop',
    ],
  ];
  test.each(cases)('%s', (_, lines, expected) => {
    const result = walk(lines);
    expect(result.notes).toEqual([]);
    expect(verdicts(result)).toEqual([expected]);
  });
});

describe('matches of other programs', () => {
  const at = (change: Partial<IptablesPacket>): IptablesPacket => ({ ...FROM_POD, ...change });
  const cases: readonly (readonly [match: string, yes: IptablesPacket, no: IptablesPacket])[] = [
    ['-p tcp -m tcp --dport 79:80', FROM_POD, at({ port: 81 })],
    ['-p tcp -m tcp ! --dport 80', at({ port: 81 }), FROM_POD],
    ['-p tcp -m multiport --dports 22,70:90', FROM_POD, at({ port: 91 })],
    ['-p tcp -m multiport ! --dports 22,70:90', at({ port: 23 }), FROM_POD],
    ['-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN', FROM_POD, at({ protocol: 'UDP' })],
    ['-p all', FROM_POD, at({ inInterface: undefined })],
    ['! -p udp', FROM_POD, at({ protocol: 'UDP' })],
    ['-m iprange --src-range 10.0.0.8-10.0.0.10', FROM_POD, at({ source: ip('10.0.0.11') })],
    ['-m iprange ! --dst-range 172.30.0.0-172.30.0.9', TO_NODE, FROM_POD],
    ['-m addrtype --dst-type MULTICAST,LOCAL', TO_NODE, at({ destination: ip('172.30.0.1') })],
    ['-m addrtype --dst-type MULTICAST', at({ destination: ip('224.0.0.1') }), FROM_POD],
    ['-m state --state NEW,ESTABLISHED', FROM_POD, at({ inInterface: undefined })],
    ['-m conntrack --ctstate NEW --ctorigdst 172.30.0.0/24', FROM_POD, TO_NODE],
    ['-m conntrack --ctproto tcp --ctorigdstport 80', FROM_POD, at({ port: 81 })],
    ['! -f', FROM_POD, at({ inInterface: undefined })],
  ];
  test.each(cases)('%s', (match, yes, no) => {
    const seen = (packet: IptablesPacket): boolean =>
      walk([`mangle PREROUTING ${match} -j DROP`], packet).outcomes[0]?.kind === 'drop';
    expect([seen(yes), seen(no)]).toEqual([true, false]);
  });

  test('flags: the first packet has SYN alone', () => {
    const seen = (flags: string): boolean =>
      walk([`mangle PREROUTING -p tcp -m tcp --tcp-flags ${flags} -j DROP`]).outcomes[0]?.kind === 'drop';
    expect(['SYN,RST SYN', 'ACK NONE', 'SYN,ACK SYN,ACK', 'FIN FIN', 'SYN NONE'].map(seen)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  test('the outgoing interface is known for what stays on the node', () => {
    const toSelf = { ...FROM_NODE, destination: ip('192.0.2.1') };
    expect(verdicts(walk(['filter OUTPUT -o lo -j DROP'], toSelf))).toEqual(['drop']);
    expect(verdicts(walk(['filter OUTPUT -o eth0 -j DROP'], toSelf))).toEqual(['pass']);
  });

  test('the raw table comes before connection tracking', () => {
    expect(verdicts(walk(['raw PREROUTING -m conntrack --ctstate NEW -j DROP']))).toEqual(['10.0.0.7:8080']);
    expect(verdicts(walk(['raw PREROUTING -m conntrack --ctstate INVALID -j DROP']))).toEqual(['drop']);
    expect(
      verdicts(
        walk(['raw PREROUTING -j NOTRACK', 'filter FORWARD -m conntrack --ctstate UNTRACKED -j DROP']),
      ),
    ).toEqual(['drop']);
  });
});

describe('what cannot be evaluated is noted with its rule, and taken as no match', () => {
  const cases = [
    '-o eth0 -j DROP',
    '-p tcp -m tcp --sport 1024:2048 -j DROP',
    '-m limit --limit 3/sec -j DROP',
    '-m set ! --match-set blocked src -j DROP',
    '-m rpfilter --invert -j DROP',
    '-m owner --uid-owner 0 -j DROP',
    '-m addrtype --dst-type BROADCAST -j DROP',
    '-m physdev --physdev-in veth0 -j DROP',
    '-m connmark --mark 0x1 -j DROP',
    '-s 10.0.0.0/255.0.255.0 -j DROP',
  ];
  test.each(cases)('%s', (rule) => {
    const result = walk([`filter FORWARD ${rule}`]);
    expect(verdicts(result)).toEqual(['10.0.0.7:8080']);
    const inOurWords = rule.replace('-p tcp -m tcp', '-m tcp -p tcp');
    expect(result.notes).toEqual([expect.stringContaining(`(in: ${inOurWords})`)]);
  });

  test('targets', () => {
    const targets = ['-j NFQUEUE --queue-num 0', '-j CONNMARK --restore-mark', '-j TPROXY --on-port 1'];
    const result = walk(targets.map((target) => `mangle PREROUTING ${target}`));
    expect(result.notes).toEqual(targets.map((target) => `not evaluated, taken as passing: ${target}`));
    expect(verdicts(result)).toEqual(['10.0.0.7:8080']);
  });

  test('another match that says no decides', () => {
    expect(walk(['filter FORWARD -p udp -m limit --limit 3/sec -j DROP']).notes).toEqual([]);
    expect(walk(['filter FORWARD -m limit --limit 3/sec -d 10.0.0.8 -j DROP']).notes).toEqual([]);
  });
});
