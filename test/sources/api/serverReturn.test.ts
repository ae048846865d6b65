/** A server that crashes, or is slow to come up, and what each resource does when it is back. */
import { describe, expect, it } from 'vitest';
import { type Fault, StatusError } from '../../support/apiServer/index.ts';
import { type Harness, startHarness } from './harness.ts';
import { SHOP, service } from './objects.ts';

const STEP_MS = 400;

/** Lists and watches that were asked for since, and how long was waited before each. */
function waits({ diagnostics }: Harness, from: number): readonly number[] {
  return diagnostics.slice(from).flatMap((each) => (each.kind === 'backingOff' ? each.delayMs : []));
}

async function pass({ clock, until }: Harness, ms: number): Promise<void> {
  const end = clock.now() + ms;
  await until('time passes', () => clock.now() >= end, STEP_MS);
}

describe('an API server that crashed', () => {
  it.each([8, 35, 100])('and is back after %i s: lists wait two seconds at most', async (seconds) => {
    const harness = await startHarness({ objects: SHOP });
    const { server, diagnostics } = harness;
    await harness.settled();
    harness.told();
    await server.close();
    await pass(harness, seconds * 1000);
    server.put(service('new', { clusterIP: '10.96.0.20' }));
    server.compact();
    const from = diagnostics.length;
    await server.listen();
    await harness.settled();
    expect(harness.told()).toEqual(['+ Service shop/new']);
    // Each watch is told that its version is gone; the list follows with no more than the spread.
    const afterAnswer = diagnostics
      .slice(from)
      .filter((each) => each.kind === 'backingOff' && each.failure.status !== undefined);
    expect(afterAnswer).toHaveLength(3);
    for (const each of afterAnswer) expect(each).toMatchObject({ next: 'list' });
    expect(Math.max(...waits(harness, from).slice(-3))).toBeLessThanOrEqual(2000);
  });

  it('and is not there yet at the start', async () => {
    const harness = await startHarness({ objects: SHOP, away: true });
    const { server } = harness;
    await pass(harness, 100_000);
    expect(harness.told()).toEqual([]);
    await server.listen();
    const from = harness.clock.now();
    await harness.settled();
    // Nobody waited for the end of a back-off of half a minute.
    const lists = harness.diagnostics.filter((each) => each.kind === 'listEnded');
    expect(lists).toHaveLength(3);
    expect(server.log.filter(({ path }) => path === '/readyz').length).toBeGreaterThan(0);
    expect(harness.clock.now()).toBeGreaterThan(from);
  });

  it.each<[string, Fault]>([
    ['401 while users are being loaded', { kind: 'status', error: new StatusError(401) }],
    ['403 while roles are being loaded', { kind: 'status', error: new StatusError(403) }],
    ['429 while it is full', { kind: 'status', error: new StatusError(429, { retryAfter: '1' }) }],
    ['500 while it is not ready', { kind: 'status', error: new StatusError(500) }],
    ['503 from a load balancer', { kind: 'answer', code: 503, contentType: 'text/html', body: '<h1>503' }],
    ['connections without an answer', { kind: 'hang' }],
    ['connections that break', { kind: 'reset' }],
  ])('and answers with %s for a while', async (_, fault) => {
    const harness = await startHarness({ objects: SHOP });
    const { server } = harness;
    await harness.settled();
    harness.told();
    await server.close();
    await pass(harness, 20_000);
    server.faults.add({ on: 'any', fault, times: Number.POSITIVE_INFINITY });
    await server.listen();
    await pass(harness, 60_000);
    server.put(service('new', { clusterIP: '10.96.0.20' }));
    server.compact();
    const from = server.log.length;
    const probes = (): number => server.log.slice(from).filter(({ path }) => path === '/readyz').length;
    server.faults.clear();
    await harness.settled();
    expect(harness.told()).toEqual(['+ Service shop/new']);
    // Ready is seen by a probe; whoever waits is woken then, not at the end of its back-off.
    expect(probes()).toBeLessThanOrEqual(4);
  });
});

describe('a connection that is accepted and forgotten', () => {
  it('is given up when the server is seen elsewhere', async () => {
    const harness = await startHarness({ objects: SHOP });
    const { server } = harness;
    await harness.settled();
    harness.told();
    // All requests hang but the probes: one backend of two is dead.
    server.faults.add({ on: 'watch', fault: { kind: 'hang' }, times: 6 });
    server.dropConnections();
    server.put(service('new', { clusterIP: '10.96.0.20' }));
    await harness.settled();
    expect(harness.told()).toEqual(['+ Service shop/new']);
  });
});
