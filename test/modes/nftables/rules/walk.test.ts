/** What becomes of a packet, and why. */
import { describe, expect, test } from 'vitest';
import type { Element, RuleSpec, Ruleset, TableSet } from '../../../../src/modes/nftables/rules/table.ts';
import { type WalkOutcome } from '../../../../src/modes/walk.ts';
import { type Packet } from '../../../../src/plan/decide.ts';
import { type LearnedEntry, type NftWalkOptions, walkNftables, walkTable } from './ruleWalk.ts';
import { cidr, ip } from '../../../plan/given.ts';
import { FakeNftKernel } from './fakeKernel.ts';
import { serveNft } from './served.ts';

/** From outside. */
const CLIENT: Packet = {
  source: ip('203.0.113.9'),
  destination: ip('10.96.0.1'),
  protocol: 'TCP',
  port: 80,
  inInterface: 'eth0',
};
const HOST = { addresses: [ip('192.0.2.10')] };

function printOutcome(outcome: WalkOutcome<LearnedEntry>): string {
  const { kind, probability } = outcome;
  const target = kind === 'forward' ? ` ${outcome.to}:${outcome.port}` : '';
  const mask = 'masqueraded' in outcome && outcome.masqueraded ? '*' : '';
  return `${Math.round(probability * 1000) / 10}% ${kind}${target}${mask}`;
}

describe('verdicts', () => {
  type Chains = Readonly<Record<string, readonly RuleSpec[]>>;
  const rule = (...statements: RuleSpec['statements']): RuleSpec => ({ statements });
  const sent = (
    chains: Chains,
    elements: readonly Element[] = [],
    sets: readonly TableSet[] = [],
    packet = CLIENT,
  ) => {
    const ruleset: Ruleset = {
      sets,
      chains: Object.entries(chains).map(([name, rules]) => ({
        name,
        rules,
        ...((name === 'prerouting' || name === 'postrouting' || name === 'output' || name === 'input') && {
          hook: { point: name, priority: 0 },
        }),
      })),
    };
    const { outcomes, notes } = walkNftables(walkTable(ruleset, elements), packet, HOST);
    return [...outcomes.map(printOutcome), ...notes];
  };
  const drop = rule({ kind: 'drop' });
  const reject = rule({ kind: 'reject' });
  const ENDPOINT = { ip: ip('10.1.0.1'), port: 8080 };
  const MAP: TableSet = { name: 'map', key: ['port'], data: 'endpoint' };
  const dnat = rule({ kind: 'dnatByMap', key: ['port'], map: 'map' });
  const TO = { set: 'map', key: { port: 80 }, endpoint: ENDPOINT };

  test('without chains a packet passes', () => expect(sent({})).toEqual(['100% pass']));
  test('after a jump the next rule comes', () =>
    expect(sent({ prerouting: [rule({ kind: 'jump', chain: 'a' }), drop], a: [] })).toEqual(['100% drop']));
  test('after a goto it does not', () =>
    expect(sent({ prerouting: [rule({ kind: 'goto', chain: 'a' }), drop], a: [] })).toEqual(['100% pass']));
  test('a goto within a jump returns to who jumped', () =>
    expect(
      sent({
        prerouting: [rule({ kind: 'jump', chain: 'a' }), reject],
        a: [rule({ kind: 'goto', chain: 'b' }), drop],
        b: [],
      }),
    ).toEqual(['100% reject']));
  test('a return ends its chain alone', () =>
    expect(
      sent({ prerouting: [rule({ kind: 'jump', chain: 'a' }), reject], a: [rule({ kind: 'return' }), drop] }),
    ).toEqual(['100% reject']));
  test('a return in a base chain lets it pass', () =>
    expect(sent({ prerouting: [rule({ kind: 'return' }), drop] })).toEqual(['100% pass']));
  test('a miss ends the rule', () =>
    expect(sent({ prerouting: [dnat, drop] }, [], [MAP])).toEqual(['100% drop']));
  test('a rewriting ends the hook, but not the next one', () =>
    expect(
      sent({ prerouting: [dnat, drop], postrouting: [rule({ kind: 'masquerade' })] }, [TO], [MAP]),
    ).toEqual(['100% forward 10.1.0.1:8080*']));
  test('what stays here goes through input, and not through postrouting', () => {
    const here = { ...TO, endpoint: { ip: ip('192.0.2.10'), port: 80 } };
    expect(
      sent({ prerouting: [dnat], postrouting: [rule({ kind: 'masquerade' })], input: [] }, [here], [MAP]),
    ).toEqual(['100% forward 192.0.2.10:80']);
  });
  test('what the node sends goes through output, and not through prerouting', () =>
    expect(
      sent({ prerouting: [drop], output: [reject] }, [], [], { ...CLIENT, inInterface: undefined }),
    ).toEqual(['100% reject']));
  test('a drawn number splits the packet, and what is missing goes on', () => {
    const drawn: TableSet = { ...MAP, key: ['port', { drawnOf: 4 }] };
    const elements = [0, 2].map((index) => ({ ...TO, key: { port: 80, index } }));
    const draw = rule({ kind: 'dnatByMap', key: ['port', { drawnOf: 4 }], map: 'map' });
    expect(sent({ prerouting: [draw, drop] }, elements, [drawn])).toEqual([
      '25% forward 10.1.0.1:8080',
      '25% forward 10.1.0.1:8080',
      '50% drop',
    ]);
  });
  test('ranges hold addresses', () => {
    const ranges: TableSet = { name: 'ranges', key: ['port', 'address'], ranges: true };
    // A key's only address stands in the range.
    const cidrs: TableSet = { name: 'cidrs', key: ['address'], ranges: true };
    const rules = [rule({ kind: 'inSet', key: ['source'], set: 'cidrs', not: false }, { kind: 'drop' })];
    const elements = [{ set: 'cidrs', key: { range: cidr('203.0.113.0/28') } }];
    expect(sent({ prerouting: rules }, elements, [ranges, cidrs])).toEqual(['100% drop']);
    expect(sent({ prerouting: rules }, [], [ranges, cidrs])).toEqual(['100% pass']);
  });
  test('a chain or set that is not there is told', () => {
    expect(sent({ prerouting: [rule({ kind: 'jump', chain: 'a' })] })).toEqual([
      '100% pass',
      'the table has no chain a',
    ]);
    expect(sent({ prerouting: [dnat] })).toEqual(['100% pass', 'the table has no set map']);
  });
  test('a loop is found', () =>
    expect(() =>
      sent({ prerouting: [rule({ kind: 'jump', chain: 'a' })], a: [rule({ kind: 'jump', chain: 'a' })] }),
    ).toThrow('too many jumps'));
});

describe('the way through a table', () => {
  const sent = async (packet: Packet, options: NftWalkOptions, ...lines: readonly string[]) => {
    const kernel = new FakeNftKernel();
    await serveNft({ lines }, kernel);
    return walkNftables(kernel.walkable, packet, HOST, options);
  };
  const X = ['a/x 10.96.0.1 80 affinity=60', 'a/x-1 of x 80 | 10.1.0.1 node-b'];

  test('names the rules that matched, and what they found', async () => {
    const { outcomes } = await sent(CLIENT, {}, ...X);
    expect(outcomes).toHaveLength(1);
    expect(outcomes[0]?.path.map(({ chain, text, found }) => [chain, text, ...found].join(' | '))).toEqual([
      'prerouting | jump services',
      'services | ip daddr @service-ips jump service-addresses | service-ips { 10.96.0.1 }',
      'service-addresses | ip saddr != 10.244.0.0/16 ip daddr . meta l4proto . th dport @masquerade-others meta mark set meta mark | 0x00004000 | masquerade-others { 10.96.0.1 . tcp . 80 comment "a/x" }',
      'service-addresses | ip daddr . meta l4proto . th dport @remembering jump remembered | remembering { 10.96.0.1 . tcp . 80 comment "a/x" }',
      'service-addresses | ip saddr != 10.244.0.0/16 fib saddr type != local jump outside',
      'service-addresses | jump any',
      'any | dnat ip to ip daddr . meta l4proto . th dport map @any-1 | any-1 { 10.96.0.1 . tcp . 80 comment "a/x" : 10.1.0.1 . 80 }',
      'postrouting | ct status dnat jump remember',
      'remember | ip daddr . tcp dport . ct original ip daddr . ct original proto-dst @connections-tcp | connections-tcp { 10.1.0.1 . 80 . 10.96.0.1 . 80 comment "a/x" }',
      'remember | tcp dport != 0 ct original ip daddr . ct original proto-dst vmap @sticky-tcp | sticky-tcp { 10.96.0.1 . 80 comment "a/x" : jump sticky-tcp-60 }',
      'sticky-tcp-60 | tcp dport != 0 update @affinity-tcp { ct original ip saddr . ct original ip daddr . ct original proto-dst timeout 1m : ip daddr . tcp dport }',
      'postrouting | meta mark set meta mark ^ 0x00004000',
      'postrouting | masquerade fully-random',
    ]);
  });

  test('says who is remembered', async () => {
    const { outcomes } = await sent(CLIENT, {}, ...X);
    expect(outcomes[0]?.learned).toEqual([
      {
        map: 'affinity-tcp',
        seconds: 60,
        client: CLIENT.source,
        destination: CLIENT.destination,
        port: 80,
        endpoint: { ip: '10.1.0.1', port: 80 },
      },
    ]);
  });

  test('counts the sets that were asked', async () => {
    const { outcomes } = await sent(CLIENT, { record: false }, ...X);
    expect(outcomes[0]).toMatchObject({ path: [], lookups: 13 });
  });
});
