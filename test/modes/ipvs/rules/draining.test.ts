/** Endpoints that go while clients are connected to them. */
import { describe, expect, test } from 'vitest';
import { DRAIN_LIMIT_MS, Harness } from './harness.ts';

const SERVER = 'TCP 10.96.0.1:80';
const ONE = 'a/x-1 of x 80 | 10.244.0.1';
const BOTH = 'a/x-1 of x 80 | 10.244.0.1 | 10.244.0.2';
const SECOND = '10.244.0.2:80';
const DRAINED = `-a -t 10.96.0.1:80 -r ${SECOND} -m -w 0`;

async function twoEndpoints(connections: number, drainLimitMs?: number): Promise<Harness> {
  const harness = new Harness(drainLimitMs === undefined ? {} : { drainLimitMs });
  await harness.sync('a/x 10.96.0.1 80', BOTH);
  harness.kernel.destination(SERVER, SECOND).connections = connections;
  return harness;
}

describe('a TCP endpoint goes', () => {
  test('without connections: weight 0, then deleted in the same sync', async () => {
    const harness = await twoEndpoints(0);
    await harness.sync(ONE);
    expect(harness.kernel.sent).toEqual([
      `-e -t 10.96.0.1:80 -r ${SECOND} -m -w 0`,
      `-d -t 10.96.0.1:80 -r ${SECOND}`,
    ]);
    expect(harness.isDraining).toBe(false);
  });

  test('with connections: weight 0 until they have ended', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    expect(harness.world).toContain(DRAINED);
    await harness.drain(30_000);
    expect(harness.world).toContain(DRAINED);
    expect(harness.isDraining).toBe(true);
    harness.kernel.destination(SERVER, SECOND).connections = 0;
    await harness.drain(30_000);
    expect(harness.world).toEqual((await harness.fromScratch()).world);
    expect(harness.isDraining).toBe(false);
  });

  test('with connections that never end: deleted at the limit, not before', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    await harness.drain(DRAIN_LIMIT_MS - 1);
    expect(harness.world).toContain(DRAINED);
    await harness.drain(1);
    expect(harness.world).toEqual((await harness.fromScratch()).world);
  });

  test('without a limit: never cut', async () => {
    const harness = await twoEndpoints(3, 0);
    await harness.sync(ONE);
    await harness.drain(Number.MAX_SAFE_INTEGER);
    expect(harness.world).toContain(DRAINED);
  });

  test('its time is counted from when it went, whatever happens to others', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    await harness.drain(DRAIN_LIMIT_MS / 2);
    await harness.syncFull();
    await harness.sync('a/x-1 of x 80 | 10.244.0.1 | 10.244.0.3');
    await harness.drain(DRAIN_LIMIT_MS / 2);
    expect(harness.world).not.toContain(DRAINED);
  });

  test('with its service: at once, whatever its connections', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    await harness.sync('- a/x', '- a/x-1');
    expect(harness.world).toEqual([]);
    expect(harness.isDraining).toBe(false);
  });

  test('a deletion that the kernel refuses is tried again', async () => {
    const harness = await twoEndpoints(1);
    await harness.sync(ONE);
    harness.kernel.destination(SERVER, SECOND).connections = 0;
    harness.kernel.fault = ({ kind }) => (kind === 'deleteDestination' ? 'ENOMEM' : undefined);
    await expect(harness.drain()).rejects.toThrow(
      expect.objectContaining({ code: 'IPVS_REFUSED', message: expect.stringContaining(SECOND) }),
    );
    expect(harness.isDraining).toBe(true);
    harness.kernel.fault = () => undefined;
    await harness.drain();
    expect(harness.world).not.toContain(DRAINED);
  });

  test('a weight that the kernel refuses to take away is tried again by the next sync', async () => {
    const harness = await twoEndpoints(1);
    harness.kernel.fault = ({ kind }) => (kind === 'setDestination' ? 'ENOMEM' : undefined);
    await expect(harness.sync(ONE)).rejects.toThrow(expect.objectContaining({ code: 'IPVS_REFUSED' }));
    harness.kernel.fault = () => undefined;
    await harness.sync();
    expect(harness.world).toContain(DRAINED);
    await harness.endConnections();
    expect(harness.world).toEqual((await harness.fromScratch()).world);
  });
});

describe.each(['udp', 'sctp'])('a %s endpoint goes', (protocol) => {
  test('at once: nobody could say when its last datagram has come', async () => {
    const harness = new Harness();
    await harness.sync(`a/x 10.96.0.1 80/${protocol}`, BOTH.replace('80', `80/${protocol}`));
    harness.kernel.destination(`${protocol.toUpperCase()} 10.96.0.1:80`, SECOND).connections = 5;
    await harness.sync(ONE.replace('80', `80/${protocol}`));
    expect(harness.kernel.sent).toEqual([
      `-d ${protocol === 'udp' ? '-u' : '--sctp-service'} 10.96.0.1:80 -r ${SECOND}`,
    ]);
    expect(harness.isDraining).toBe(false);
    expect(harness.kernel.destinationReads).toBe(0);
  });
});

describe('an endpoint comes back while it drains', () => {
  test('its weight is set, and it is not deleted', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    await harness.sync(BOTH);
    expect(harness.kernel.sent).toEqual([`-e -t 10.96.0.1:80 -r ${SECOND} -m -w 1`]);
    harness.kernel.destination(SERVER, SECOND).connections = 0;
    await harness.drain(DRAIN_LIMIT_MS * 2);
    expect(harness.world).toEqual((await harness.fromScratch()).world);
    expect(harness.isDraining).toBe(false);
  });

  test('and goes again: its time begins anew', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    harness.now += DRAIN_LIMIT_MS - 1;
    await harness.sync(BOTH);
    await harness.sync(ONE);
    await harness.drain(DRAIN_LIMIT_MS - 1);
    expect(harness.world).toContain(DRAINED);
  });

  test('and somebody has deleted it: mended at once', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    harness.kernel.servers.get(SERVER)?.destinations.delete(SECOND);
    expect((await harness.sync(BOTH)).kind).toBe('full');
    expect(harness.world).toEqual((await harness.fromScratch()).world);
  });

  test('and somebody else has raised it already: it is no longer ours to delete', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    const destination = harness.kernel.destination(SERVER, SECOND);
    destination.weight = 1;
    destination.connections = 0;
    await harness.drain();
    expect(harness.kernel.destination(SERVER, SECOND).weight).toBe(1);
  });
});

describe('after a restart', () => {
  test('endpoints that drain go on draining, and go at last', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    const next = harness.restarted();
    await next.sync();
    expect(next.world).toContain(DRAINED);
    expect(next.kernel.sent.filter((line) => line.includes(SECOND))).toEqual([]);
    expect(next.isDraining).toBe(true);
    await next.endConnections();
    expect(next.world).toEqual((await next.fromScratch()).world);
  });

  test('endpoints that are wanted again are given their weight', async () => {
    const harness = await twoEndpoints(3);
    await harness.sync(ONE);
    const next = harness.restarted();
    await next.sync(BOTH);
    expect(next.kernel.sent).toContain(`-e -t 10.96.0.1:80 -r ${SECOND} -m -w 1`);
    expect(next.world).toEqual((await next.fromScratch()).world);
    expect(next.isDraining).toBe(false);
  });

  test.each([0, 5])('a wanted endpoint with weight %i is set to 1', async (weight) => {
    const harness = await twoEndpoints(0);
    harness.kernel.destination(SERVER, SECOND).weight = weight;
    const next = harness.restarted();
    await next.sync();
    expect(next.kernel.destination(SERVER, SECOND).weight).toBe(1);
  });
});
