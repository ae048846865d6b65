/** What is said of resources that cannot be listed or watched, from what the API server answers. */
import { describe, expect, test } from 'vitest';
import { SourceHealth } from '../../src/daemon/sourceHealth.ts';
import { ALWAYS, change, inStream, status } from '../sources/api/faults.ts';
import { type Harness, type HarnessOptions, startHarness } from '../sources/api/harness.ts';
import { SHOP } from '../sources/api/objects.ts';
import { keptLog } from '../telemetry/http/support.ts';

interface Watched extends Harness {
  readonly health: SourceHealth;
  readonly lines: readonly string[];
  readonly up: ReadonlyMap<string, boolean>;
  readonly failures: readonly string[];
}

async function watched(options: HarnessOptions = {}): Promise<Watched> {
  const { log, lines } = keptLog();
  const up = new Map<string, boolean>();
  const failures: string[] = [];
  const made: SourceHealth[] = [];
  const harness = await startHarness({
    objects: SHOP,
    ...options,
    observe: (clock) => {
      const health = new SourceHealth({
        clock,
        now: () => ({ wallNs: BigInt(clock.now()) * 1_000_000n, steadyNs: BigInt(clock.now()) * 1_000_000n }),
        log,
        metrics: {
          resourceUp: (resource, isUp) => void up.set(resource, isUp),
          resourceFailed: (resource, kind) => void failures.push(`${resource} ${kind}`),
        },
      });
      made.push(health);
      return (diagnostic) => {
        if ('resource' in diagnostic) health.note(diagnostic);
      };
    },
  });
  const [health] = made;
  if (!health) throw new Error('nobody observes');
  return { ...harness, health, lines, up, failures };
}

const FORBIDDEN = status(403, { reason: 'Forbidden' });

describe('a resource that cannot be listed', () => {
  test('is told of at once, then once a minute, with since when and why', async () => {
    const faults = [{ on: 'any', resource: 'services', fault: FORBIDDEN, times: ALWAYS }] as const;
    const { health, lines, up, failures, ...harness } = await watched({ faults });
    await harness.pass(200_000);
    expect(lines[0]).toContain('"msg":"Watch or list failed; retrying","resource":"services"');
    expect(lines).toHaveLength(1 + 3);
    for (const line of lines.slice(1)) {
      expect(line).toContain('"level":"error"');
      expect(line).toMatch(/"resources":\["services"\],"neverListed":\["services"\],"since":"19(?:69|70)-/);
      expect(line).toContain('answered 403 Forbidden');
    }
    const services = {
      resource: 'services',
      hasListed: false,
      reason: expect.stringContaining('403') as string,
    };
    expect(health.resources()).toContainEqual(expect.objectContaining(services));
    expect(up.get('services')).toBe(false);
    expect(new Set(failures)).toEqual(new Set(['services forbidden']));
    harness.server.faults.clear();
    await harness.settled();
    expect(lines.at(-1)).toContain('"msg":"Listed again","resource":"services"');
    expect(health.resources().find(({ resource }) => resource === 'services')).toEqual({
      resource: 'services',
      hasListed: true,
      encoding: 'protobuf',
    });
    expect(up.get('services')).toBe(true);
  });

  test('together with others for the same reason is one line', async () => {
    const { lines, pass } = await watched({ away: true });
    await pass(70_000);
    expect(lines).toHaveLength(3 + 1);
    expect(lines[3]).toContain('"resources":["nodes","services","endpointslices"]');
  });
});

describe('a watch that ends', () => {
  test('and goes on is one line, and nothing a minute later', async () => {
    const { health, lines, server, settled, pass } = await watched();
    await settled();
    await pass(10_000);
    for (const watch of server.watchesOf('services')) watch.cut();
    await pass(200_000);
    expect(lines).toHaveLength(1);
    expect(health.resources().filter(({ since }) => since)).toEqual([]);
    expect(health.reconnects).toBe(1);
  });

  test('because its version expired, and is listed again, is no warning', async () => {
    const { lines, server, settled } = await watched();
    await settled();
    server.faults.add({ on: 'watch', fault: inStream(410, { reason: 'Expired' }), times: 3 });
    for (const watch of server.watches) watch.end();
    change(server);
    await settled();
    expect(lines.filter((line) => line.includes('"level":"warning"') && line.includes('410'))).toEqual([]);
    expect(lines.some((line) => line.includes('"msg":"Listed again"'))).toBe(true);
  });

  test('each time it has begun is failing since the first time', async () => {
    const { health, failures, server, settled, pass, until } = await watched();
    await settled();
    await pass(10_000);
    const fault = inStream(500, { reason: 'InternalError' });
    server.faults.add({ on: 'watch', resource: 'services', fault, times: ALWAYS });
    for (const watch of server.watchesOf('services')) watch.end();
    const sinceOfFailure = async (number: number): Promise<string | undefined> => {
      await until(`failure ${number}`, () => failures.length === number);
      return health.resources().find(({ resource }) => resource === 'services')?.since;
    };
    const first = await sinceOfFailure(1);
    expect(first).toBeDefined();
    expect(await sinceOfFailure(2)).toBe(first);
  });
});
