/**
 * `/healthz` for load balancers, which should also leave a node that is going away; `/livez` for restarts; `/readyz` for
 * people: each part with what is wrong with it.
 */
import { type Answer, json, NOT_FOUND, type Page, plain } from './answer.ts';
import { type BindOptions, BoundServer } from './boundServer.ts';
import type { Health, HealthState, ResourceHealth } from './healthState.ts';
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
  return ({ path, query }) => {
    if (path === '/readyz') return readyAnswer(state, query.has('verbose'));
    if (path !== '/healthz' && path !== '/livez') return NOT_FOUND;
    const { nodeEligible, resources } = state;
    const health = state.check();
    const isHealthz = path === '/healthz';
    // A restart would not help where a family cannot be asked for, so /livez is content.
    const mayServe =
      nodeEligible &&
      resources.every(({ hasListed }) => hasListed) &&
      health.leftOut.every(({ isAnswered }) => isAnswered);
    const code = health.healthy && (mayServe || !isHealthz) ? '200' : '503';
    if (isHealthz) counter?.healthzAnswered(code);
    else counter?.livezAnswered(code);
    return healthAnswer(code, health, now, isHealthz ? nodeEligible : undefined, resources);
  };
}

/** In the form of the API server's page of the same name. */
function readyAnswer(state: HealthState, isVerbose: boolean): Answer {
  const { families, leftOut } = state.check();
  const checks = [
    ...state.resources.map(({ resource, hasListed, since, reason = '' }) => {
      const why = since === undefined ? '' : ` since ${since}: ${reason}`;
      const text = hasListed ? `${resource} ok` : `${resource} failed: never listed${why}`;
      return {
        isGood: hasListed,
        text: hasListed && why !== '' ? `${text} (cannot be watched${why})` : text,
      };
    }),
    ...families.map(({ family, healthy }) => ({
      isGood: healthy,
      text: healthy ? `${family} ok` : `${family} failed: a change waits`,
    })),
    ...leftOut.map(({ family, reason, isAnswered }) => ({
      isGood: isAnswered,
      text: `${family} ${isAnswered ? 'not served' : 'failed'}: ${reason}`,
    })),
  ];
  const isGood = families.length > 0 && checks.every((check) => check.isGood);
  if (isGood && !isVerbose) return plain(200, 'ok');
  const lines = checks.map((check) => `[${check.isGood ? '+' : '-'}]${check.text}`);
  lines.push(`readyz check ${isGood ? 'passed' : 'failed'}`);
  return plain(isGood ? 200 : 503, `${lines.join('\n')}\n`);
}

function healthAnswer(
  code: HealthCode,
  health: Health,
  now: MomentSource,
  nodeEligible: boolean | undefined,
  resources: readonly ResourceHealth[],
): Answer {
  const lastUpdated = health.lastUpdated ? printTime(health.lastUpdated) : NEVER;
  const status = health.families.map(({ family, lastUpdated: at, healthy }) => [
    family,
    { lastUpdated: printTime(at), healthy },
  ]);
  // kube-proxy's page has no such part; it appears when there is something to tell.
  const failing = resources
    .filter(({ hasListed, since }) => !hasListed || since !== undefined)
    .map(({ resource, ...detail }) => [resource, detail]);
  const leftOut = health.leftOut.map(({ family, since, reason }) => [
    family,
    { since: printTime(since), reason },
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
      ...(failing.length > 0 && { resources: Object.fromEntries(failing) }),
      ...(leftOut.length > 0 && { leftOut: Object.fromEntries(leftOut) }),
    }),
  );
}
