/** `/healthz` for load balancers, which should also leave a node that is going away; `/livez` for restarts. */
import { type Answer, json, NOT_FOUND, type Page } from './answer.ts';
import { type BindOptions, BoundServer } from './boundServer.ts';
import type { Health, HealthState } from './healthState.ts';
import { NEVER, type MomentSource, printTime } from './moment.ts';

export type HealthCode = '200' | '503';

/** Who counts the answers. */
export interface ProbeCounter {
  healthzAnswered(code: HealthCode): void;
  livezAnswered(code: HealthCode): void;
}

export interface HealthPageOptions {
  readonly state: HealthState;
  readonly now: MomentSource;
  readonly counter?: ProbeCounter | undefined;
}

export class HealthServer extends BoundServer {
  constructor(options: BindOptions & HealthPageOptions) {
    super(options, healthPage(options), {
      message: 'Healthz server failed',
      what: 'failed to start proxy healthz on',
    });
  }
}

export function healthPage({ state, now, counter }: HealthPageOptions): Page {
  return ({ path }) => {
    if (path !== '/healthz' && path !== '/livez') return NOT_FOUND;
    const { nodeEligible } = state;
    const health = state.check();
    const isHealthz = path === '/healthz';
    const code = health.healthy && (nodeEligible || !isHealthz) ? '200' : '503';
    if (isHealthz) counter?.healthzAnswered(code);
    else counter?.livezAnswered(code);
    return healthAnswer(code, health, now, isHealthz ? nodeEligible : undefined);
  };
}

function healthAnswer(
  code: HealthCode,
  health: Health,
  now: MomentSource,
  nodeEligible: boolean | undefined,
): Answer {
  const lastUpdated = health.lastUpdated ? printTime(health.lastUpdated) : NEVER;
  const status = health.families.map(({ family, lastUpdated: at, healthy }) => [
    family,
    { lastUpdated: printTime(at), healthy },
  ]);
  return json(
    Number(code),
    JSON.stringify({
      // Probes of old took an old time for a stuck proxy, so a healthy one is always up to date.
      lastUpdated: code === '200' ? printTime(now()) : lastUpdated,
      currentTime: printTime(health.checkedAt),
      ...(nodeEligible !== undefined && { nodeEligible }),
      healthy: health.healthy,
      ...(status.length > 0 && { status: Object.fromEntries(status) }),
    }),
  );
}
