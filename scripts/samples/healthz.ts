/** `/healthz` as docs/metrics.md shows it, laid out as jq does. */
import { healthPage, HealthState, type ResourceHealth } from '../../src/telemetry/http/health.ts';
import type { Timestamp } from '../../src/telemetry/http/timestamp.ts';

const START_NS = BigInt(Date.UTC(2026, 10, 15, 3, 35)) * 1_000_000n;

function momentAt(seconds: number): Timestamp {
  const steadyNs = BigInt(Math.round(seconds * 1e9));
  return { wallNs: START_NS + steadyNs, steadyNs };
}

async function answer(state: HealthState, now: () => Timestamp): Promise<Readonly<Record<string, unknown>>> {
  const request = {
    method: 'GET',
    path: '/healthz',
    query: new URLSearchParams(),
    headers: {},
    signal: new AbortController().signal,
    text: async () => '',
  };
  const { body } = await healthPage({ state, now })(request);
  if (typeof body !== 'string') throw new Error('/healthz answered something else than text');
  return JSON.parse(body) as Readonly<Record<string, unknown>>;
}

function printed(command: string, value: unknown): string {
  return `$ ${command}\n${JSON.stringify(value, null, 2)}\n`;
}

/** IPv6 has had a change waiting for more than a minute. */
export async function lateFamily(): Promise<string> {
  let seconds = 2.5;
  const now = (): Timestamp => momentAt(seconds);
  const state = new HealthState({ syncPeriodMs: 30_000, now });
  state.nodeEligible = true;
  state.updated('IPv6');
  state.queued('IPv6');
  seconds = 64.25;
  state.updated('IPv4');
  seconds = 75;
  return printed('curl -s localhost:10256/healthz | jq', await answer(state, now));
}

export async function unlistedResource(): Promise<string> {
  const now = (): Timestamp => momentAt(60);
  const services: ResourceHealth = {
    resource: 'services',
    hasListed: false,
    since: '2026-11-15T03:35:18.681513032Z',
    reason: 'listing services: the API server answered 403 Forbidden: services is forbidden: …',
  };
  const state = new HealthState({ syncPeriodMs: 30_000, now, resources: () => [services] });
  const { resources } = await answer(state, now);
  return printed('curl -s localhost:10256/healthz | jq .resources', resources);
}
