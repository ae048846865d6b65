/**
 * Waits until another service proxy has taken over this node, so that what Junction left can be deleted without a gap.
 * kube-proxy's `/healthz` says 200 before its first sync; only its metrics say that the rules are written.
 */
import { localAddress } from '../system/kubeProxy.ts';
import { JunctionError } from '../errors.ts';
import { type HttpAnswer, httpGet } from '../system/httpGet.ts';
import { findHolder } from '../system/instanceLock.ts';
import type { Clock } from '../time/clock.ts';
import { systemClock } from '../time/systemClock.ts';
import { wait } from '../time/wait.ts';
import type { Output } from './output.ts';

interface ProxyWait {
  /** Where its health is asked for: `127.0.0.1:10256`. */
  readonly health: string;
  /** Where its metrics are; '': nowhere. */
  readonly metrics: string;
  /** 0: as long as it takes. */
  readonly timeoutMs: number;
}

/** Everything here is the real one unless a test brings its own. */
interface WaitMachine {
  readonly get?: Get;
  readonly findHolder?: typeof findHolder;
  readonly clock?: Clock;
}

const INTERVAL_MS = 1000;
const ANSWER_LIMIT_MS = 3000;
/** Where nothing says whether the rules are written, health for this long stands in for it. */
const HEALTHY_MS = 30_000;

/** What there is to wait for. */
interface Obstacle {
  readonly text: string;
  /** The proxy is healthy, and nothing says whether its rules are written. */
  readonly isUntimed?: boolean;
}

type Get = (url: string) => Promise<HttpAnswer | undefined>;

/** Throws `NO_OTHER_PROXY` when the time is over. */
export async function waitForProxy(
  output: Pick<Output, 'err'>,
  { health, metrics, timeoutMs }: ProxyWait,
  { get = askLocally, findHolder: holderOf = findHolder, clock = systemClock }: WaitMachine = {},
): Promise<void> {
  const junction = async (): Promise<Obstacle | undefined> => {
    const found = await holderOf();
    return found && !found.isImpostor ? { text: `a Junction runs here: ${found.text}` } : undefined;
  };
  const until = timeoutMs > 0 ? clock.now() + timeoutMs : Number.POSITIVE_INFINITY;
  let said = '';
  let untimedSince: number | undefined;
  for (;;) {
    // Asked before and after, so that the answer is not a Junction's own.
    const obstacle =
      (await junction()) ??
      (await unhealthy(localAddress(health), get)) ??
      (await junction()) ??
      (await unwritten(localAddress(metrics), get));
    if (!obstacle) return;
    untimedSince = obstacle.isUntimed === true ? (untimedSince ?? clock.now()) : undefined;
    if (untimedSince !== undefined && clock.now() - untimedSince >= HEALTHY_MS) return;
    if (clock.now() >= until)
      throw new JunctionError(
        'NO_OTHER_PROXY',
        `no other service proxy has taken over this node: ${obstacle.text}`,
      );
    if (obstacle.text !== said) output.err(`note: waiting: ${obstacle.text}\n`);
    said = obstacle.text;
    await wait(clock, INTERVAL_MS);
  }
}

/** `/livez` too: on a node that is about to be deleted `/healthz` is 503. */
async function unhealthy(address: string, get: Get): Promise<Obstacle | undefined> {
  const answer = await get(`http://${address}/healthz`);
  if (answer?.status === 200) return undefined;
  if (answer === undefined) return { text: `no service proxy answers at ${address}` };
  if ((await get(`http://${address}/livez`))?.status === 200) return undefined;
  return { text: `the service proxy at ${address} is not healthy: it answers ${answer.status}` };
}

const SAMPLE = /^kubeproxy_sync_proxy_rules_last_(queued_)?timestamp_seconds(\{[^}]*\})? (\S+)/gm;

/** Each family has a time of its start, and after its first sync one of that. */
async function unwritten(address: string, get: Get): Promise<Obstacle | undefined> {
  const answer = address === '' ? undefined : await get(`http://${address}/metrics`);
  const where = address === '' ? 'anywhere' : `at ${address}`;
  if (answer?.status !== 200) {
    const text = `a service proxy is healthy; its metrics, which say whether its rules are written, are not found ${where}: ${HEALTHY_MS / 1000} s of health stand in for them`;
    return { text, isUntimed: true };
  }
  const started = new Set<string>();
  const synced = new Set<string>();
  for (const [, queued, labels = '', value] of answer.text.matchAll(SAMPLE)) {
    if (Number(value) > 0) (queued === undefined ? synced : started).add(labels);
  }
  const isWritten = synced.size > 0 && [...started].every((labels) => synced.has(labels));
  return isWritten ? undefined : { text: `the service proxy ${where} has not written its rules yet` };
}

function askLocally(url: string): Promise<HttpAnswer | undefined> {
  return httpGet(url, ANSWER_LIMIT_MS);
}
