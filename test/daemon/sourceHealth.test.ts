import { describe, expect, test } from 'vitest';
import { SourceHealth } from '../../src/daemon/sourceHealth.ts';
import type { ResourceDiagnostic } from '../../src/sources/api/diagnostics.ts';
import { ApiFailure, type FailureKind } from '../../src/sources/api/failure.ts';
import { FakeMoments, keptLog } from '../telemetry/http/support.ts';
import { FakeClock } from '../time/fakeClock.ts';

function setup() {
  const clock = new FakeClock();
  const moments = new FakeMoments();
  const { log, lines } = keptLog();
  const up = new Map<string, boolean>();
  const failures: string[] = [];
  const health = new SourceHealth({
    clock,
    now: moments.now,
    log,
    metrics: {
      resourceUp: (resource, isUp) => void up.set(resource, isUp),
      resourceFailed: (resource, kind) => void failures.push(`${resource} ${kind}`),
    },
  });
  const pass = async (seconds: number): Promise<void> => {
    moments.advance(seconds);
    await clock.advance(seconds * 1000);
  };
  return { health, lines, up, failures, pass, clock };
}

function failed(resource: string, kind: FailureKind, next: 'list' | 'watch'): ResourceDiagnostic {
  const failure = new ApiFailure('API_UNREACHABLE', kind, `${resource}: ${kind}`);
  return { kind: 'backingOff', resource, delayMs: 1, next, failure };
}

function listed(resource: string): ResourceDiagnostic {
  const numbers = { objects: 1, requests: 1, durationMs: 1, resourceVersion: '1' };
  return { kind: 'listEnded', resource, how: 'pages', encoding: 'protobuf', ...numbers };
}

const watching = (resource: string): ResourceDiagnostic => ({
  kind: 'watchStarted',
  resource,
  resourceVersion: '1',
  encoding: 'protobuf',
});
const listing = (resource: string): ResourceDiagnostic => ({ kind: 'listStarted', resource, how: 'stream' });

describe('a resource that cannot be listed', () => {
  test('is told of at once, then once a minute, with since when and why', async () => {
    const { health, lines, up, failures, pass } = setup();
    health.note(listing('services'));
    for (let attempt = 0; attempt < 20; attempt++) {
      health.note(failed('services', 'forbidden', 'list'));
      // A streaming list that is opened and then fails is no success.
      health.note(watching('services'));
      await pass(10);
    }
    expect(lines[0]).toContain('"msg":"Watch or list failed; retrying"');
    expect(lines).toHaveLength(1 + 3);
    for (const line of lines.slice(1)) {
      expect(line).toContain('"level":"error"');
      expect(line).toContain(
        '"resources":["services"],"neverListed":["services"],"since":"2026-11-15T03:35:30Z"',
      );
      expect(line).toContain('services: forbidden');
    }
    expect(health.resources()).toEqual([
      {
        resource: 'services',
        encoding: 'protobuf',
        hasListed: false,
        since: '2026-11-15T03:35:30Z',
        reason: 'services: forbidden',
      },
    ]);
    expect(up.get('services')).toBe(false);
    expect(failures).toHaveLength(20);
    health.note(listed('services'));
    expect(lines.at(-1)).toContain('"msg":"Listed again"');
    expect(lines.at(-1)).toContain('"seconds":200');
    expect(health.resources()).toEqual([{ resource: 'services', hasListed: true, encoding: 'protobuf' }]);
    expect(up.get('services')).toBe(true);
  });

  test('together with others for the same reason is one line', async () => {
    const { health, lines, pass } = setup();
    for (const resource of ['services', 'nodes']) health.note(failed(resource, 'unreachable', 'list'));
    health.note(failed('endpointslices', 'forbidden', 'list'));
    await pass(60);
    expect(lines.slice(3)).toHaveLength(2);
    expect(lines[3]).toContain('"resources":["services","nodes"]');
  });
});

describe('a watch that ends', () => {
  test('and goes on is one line, and nothing a minute later', async () => {
    const { health, lines, pass, clock } = setup();
    health.note(listed('services'));
    health.note(failed('services', 'unreachable', 'watch'));
    health.note(watching('services'));
    expect(health.resources()).toEqual([{ resource: 'services', hasListed: true, encoding: 'protobuf' }]);
    await pass(200);
    expect(lines).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  test('because its version expired, and is listed again, is no line', async () => {
    const { health, lines } = setup();
    health.note(listed('services'));
    health.note(failed('services', 'expired', 'list'));
    health.note(watching('services'));
    expect(health.resources()[0]).toMatchObject({ reason: 'services: expired' });
    health.note(listed('services'));
    expect(lines.filter((line) => line.includes('"level":"warning"'))).toEqual([]);
  });

  test('each time it has begun is failing since the first time', async () => {
    const { health, pass } = setup();
    health.note(listed('services'));
    for (let attempt = 0; attempt < 5; attempt++) {
      health.note(watching('services'));
      await pass(1);
      health.note(failed('services', 'serverError', 'watch'));
      await pass(10);
    }
    expect(health.resources()[0]?.since).toBe('2026-11-15T03:35:31Z');
  });
});
