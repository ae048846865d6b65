import { describe, expect, test } from 'vitest';
import { Proof, type ProofResult } from '../../src/daemon/proof/proof.ts';
import { ProofBudget } from '../../src/daemon/proof/budget.ts';
import type { Disagreement } from '../../src/explain/status.ts';
import type { FamilySubject, Subject } from '../../src/explain/subject.ts';
import type { Host, Packet } from '../../src/plan/decide.ts';
import { decide } from '../../src/plan/decide.ts';
import type { WalkOutcome, WalkResult } from '../../src/modes/walk.ts';
import { make, tell } from '../proxy/given.ts';
import { ip } from '../plan/given.ts';
import { FakeClock } from '../time/fakeClock.ts';

const SERVICES = [
  'shop/web NodePort 10.96.0.1 80@30080',
  'shop/web-1 of web 80 | 10.244.0.1 node-a | 10.244.0.2 node-b',
  'shop/db 10.96.0.2 5432',
  'shop/db-1 of db 5432 | 10.244.0.3 node-a',
];
const HOST: Host = { addresses: [ip('192.168.0.1')] };
const DROP: WalkOutcome<unknown> = {
  kind: 'drop',
  probability: 1,
  path: [
    {
      hook: '',
      table: 'filter',
      chain: 'FORWARD',
      ruleIndex: 0,
      text: '-j DROP',
      found: [],
      isForeign: true,
    },
  ],
  lookups: 0,
  byAffinity: false,
  learned: [],
};

async function setUp() {
  const { proxy } = make();
  const clock = new FakeClock();
  let spentMs = 0;
  proxy.onSynced();
  tell(proxy, ...SERVICES);
  const { changes } = (await proxy.sync()) ?? { changes: [] };
  const state = {
    isSettled: true,
    /** Instead of what is planned. */
    walk: undefined as ((packet: Packet) => WalkResult<unknown> | undefined) | undefined,
    walked: [] as Packet[],
    walkMs: 0,
  };
  const family: FamilySubject = {
    family: 'IPv4',
    plan: proxy.plan,
    host: HOST,
    ...proxy.inputs,
    refused: new Map(),
    kernel: {
      walk: (packet) => {
        state.walked.push(packet);
        spentMs += state.walkMs;
        return Promise.resolve(state.walk?.(packet) ?? asPlanned(packet));
      },
      compare: () => Promise.resolve([]),
      dump: () => Promise.resolve(undefined),
    },
  };
  function asPlanned(packet: Packet): WalkResult<unknown> {
    const decision = decide(proxy.plan, packet, HOST);
    const ending = { path: [], lookups: 0, learned: [], byAffinity: false };
    if (decision.verdict !== 'forward')
      return {
        outcomes: [{ kind: decision.verdict, masqueraded: false, probability: 1, ...ending }],
        notes: [],
      };
    const { targets } = decision;
    const outcomes = targets.map(({ endpoint, masquerade }) => ({
      kind: 'forward' as const,
      to: endpoint.ip,
      port: endpoint.port,
      masqueraded: masquerade,
      probability: 1 / targets.length,
      ...ending,
    }));
    return { outcomes, notes: [] };
  }
  const subject: Subject = { nodeName: 'node-a', mode: 'nftables', layout: '', families: [], now: () => 0 };
  const results: ProofResult[] = [];
  const found: Disagreement[] = [];
  const resolved: Disagreement[] = [];
  const proof = new Proof({
    subject: () => subject,
    family: () => family,
    isSettled: () => state.isSettled,
    clock: {
      now: () => clock.now() + spentMs,
      schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
    },
    wallTime: () => clock.now(),
    onPacket: (result) => results.push(result),
    onDisagreement: (disagreement) => found.push(disagreement),
    onResolved: (disagreement) => resolved.push(disagreement),
  });
  return { proof, state, clock, changes, results, found, resolved, proxy };
}

describe('after a sync', () => {
  test('packets of each frontend and source class of what was written are walked, and a few of others', async () => {
    const { proof, state, clock, changes, results } = await setUp();
    proof.synced(changes.filter(({ id }) => id === 'shop/web/TCP'));
    await clock.advance(999);
    expect(state.walked).toEqual([]);
    await clock.advance(1);
    const web = state.walked.filter(({ port }) => port !== 5432);
    expect(new Set(web.map(({ destination, port }) => `${destination} ${port}`))).toEqual(
      new Set(['10.96.0.1 80', '192.168.0.1 30080']),
    );
    expect(new Set(web.map(({ inInterface }) => inInterface === undefined)).size).toBe(2);
    expect(state.walked.some(({ port }) => port === 5432)).toBe(true);
    expect(new Set(results)).toEqual(new Set(['agrees']));
    expect(proof.status).toMatchObject({ isOn: true, packets: results.length, disagreements: [] });
  });

  test('nothing is walked while the next sync is under way', async () => {
    const { proof, state, clock, changes } = await setUp();
    state.isSettled = false;
    proof.synced(changes);
    await clock.advance(5000);
    expect(state.walked).toEqual([]);
    state.isSettled = true;
    await clock.advance(10_000);
    expect(state.walked.length).toBeGreaterThan(0);
  });

  test('syncs that follow each other do not put it off', async () => {
    const { proof, state, clock, changes } = await setUp();
    for (let syncs = 0; syncs < 4; syncs++) {
      proof.synced(changes);
      await clock.advance(300);
    }
    expect(state.walked.length).toBeGreaterThan(0);
  });

  test('without syncs everything has its turn', async () => {
    const { proof, state, clock } = await setUp();
    proof.synced([]);
    await clock.advance(30_000);
    expect(new Set(state.walked.map(({ port }) => port))).toEqual(new Set([80, 30080, 5432]));
  });
});

describe('a disagreement', () => {
  const toWeb = ({ port }: Packet): WalkResult<unknown> | undefined =>
    port === 80 ? { outcomes: [DROP], notes: [] } : undefined;

  test('that is there twice is reported once, kept, and resolved', async () => {
    const { proof, state, clock, changes, found, resolved } = await setUp();
    state.walk = toWeb;
    proof.synced(changes);
    await clock.advance(1000);
    expect(state.walked.length).toBeGreaterThan(0);
    expect(found).toEqual([]);
    await clock.advance(60_000);
    expect(found.length).toBeGreaterThan(0);
    expect(new Set(found.map(({ packet }) => packet)).size).toBe(found.length);
    expect(found[0]).toMatchObject({
      service: 'shop/web',
      planned: 'forwarded to 10.244.0.1:80, 10.244.0.2:80',
      kernel: "dropped by filter FORWARD: -j DROP (another program's rule)",
    });
    expect(found[0]?.packet).toContain('→ 10.96.0.1:80/TCP');
    expect(proof.status.disagreements).toEqual(found);
    state.walk = undefined;
    await clock.advance(60_000);
    expect(resolved).toEqual(found);
    expect(proof.status).toMatchObject({ disagreements: [], disagreementCount: found.length });
  });

  test('that is repaired before the second look is none', async () => {
    const { proof, state, clock, changes, found } = await setUp();
    let looks = 0;
    state.walk = (packet) => (looks++ === 0 ? toWeb({ ...packet, port: 80 }) : undefined);
    proof.synced(changes);
    await clock.advance(60_000);
    expect(found).toEqual([]);
  });

  test('under another plan is another question', async () => {
    const { proof, state, clock, changes, found } = await setUp();
    state.walk = toWeb;
    proof.synced(changes);
    for (let syncs = 0; syncs < 10; syncs++) {
      await clock.advance(500);
      proof.synced([]);
    }
    expect(found).toEqual([]);
  });

  test('with something that could not be evaluated is not one', async () => {
    const { proof, state, clock, changes, found, results } = await setUp();
    state.walk = (packet) => {
      const walked = toWeb(packet);
      return walked && { ...walked, notes: ['not evaluated, taken as no match: -m u32'] };
    };
    proof.synced(changes);
    await clock.advance(60_000);
    expect(found).toEqual([]);
    expect(results).toContain('not_evaluated');
  });

  test('of a service that is gone is resolved', async () => {
    const { proof, state, clock, changes, found, resolved, proxy } = await setUp();
    state.walk = toWeb;
    proof.synced(changes);
    await clock.advance(60_000);
    tell(proxy, '- shop/web');
    proof.synced((await proxy.sync())?.changes ?? []);
    await clock.advance(60_000);
    expect(resolved).toEqual(found);
  });
});

describe('its cost', () => {
  test('is a hundredth of the time, whatever changes', async () => {
    const { proof, state, clock, changes } = await setUp();
    state.walkMs = 40;
    for (let seconds = 0; seconds < 200; seconds++) {
      proof.synced(changes);
      await clock.advance(1000);
    }
    const spentMs = state.walked.length * 40;
    expect(spentMs).toBeGreaterThan(0.005 * clock.now());
    expect(spentMs).toBeLessThan(0.01 * clock.now() + 250);
  });

  test('is saved up for a while', async () => {
    const clock = new FakeClock();
    const budget = new ProofBudget({ clock, share: 0.01, mostSavedMs: 50 });
    budget.spend(60);
    expect(budget.hasSome).toBe(false);
    await clock.advance(Math.ceil(budget.waitMs));
    expect(budget.hasSome).toBe(true);
    await clock.advance(1_000_000);
    budget.spend(49);
    expect(budget.hasSome).toBe(true);
  });
});
