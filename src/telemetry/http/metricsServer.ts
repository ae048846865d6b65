/** The port for operators: metrics, configuration, and on request profiles. It reports; it decides nothing. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { HealthcheckMetrics } from '../metrics/componentMetrics.ts';
import { CONTENT_TYPE } from '../metrics/exposition.ts';
import { type DebugOptions, debugPages } from './debugPages.ts';
import {
  type Answer,
  type BindOptions,
  BoundServer,
  json,
  NOT_FOUND,
  type Page,
  plain,
  readOnly,
  type Request,
} from './server.ts';

export interface MetricsPageOptions {
  readonly mode: string;
  readonly metrics: () => Promise<string>;
  /** The configuration in force, keys in the order in which they are shown. */
  readonly configz: () => unknown;
  readonly flags: () => Iterable<readonly [name: string, value: string]>;
  readonly status: () => { readonly startedAt: Date; readonly now: Date; readonly version: string };
  /** Absent: no `/debug`. */
  readonly debug?: DebugOptions | undefined;
}

export class MetricsServer extends BoundServer {
  constructor(options: BindOptions & MetricsPageOptions) {
    super(options, metricsPages(options), {
      message: 'Metrics server failed',
      what: 'starting metrics server failed on',
    });
  }
}

function metricsPages(options: MetricsPageOptions): Page {
  const { mode, metrics, configz, flags, status, debug } = options;
  const healthchecks = new HealthcheckMetrics();
  const exposition = async (request: Request, text: Promise<string>): Promise<Answer> =>
    zipped(request, { status: 200, headers: { 'Content-Type': CONTENT_TYPE }, body: await text });
  const pages = new Map<string, Page>([
    ['/healthz', readOnly((request) => healthz(request, healthchecks))],
    ['/healthz/ping', readOnly(() => plain(200, 'ok'))],
    ['/proxyMode', readOnly(() => plain(200, mode))],
    ['/metrics', readOnly((request) => exposition(request, metrics()))],
    ['/configz', readOnly(() => json(200, JSON.stringify({ 'kubeproxy.config.k8s.io': configz() })))],
    ['/flagz', readOnly(() => plain(200, flagzText(flags())))],
    ['/statusz', readOnly(() => plain(200, statuszText(status())))],
    [
      '/metrics/slis',
      (request) =>
        request.method === 'DELETE'
          ? reset(healthchecks)
          : readOnly((reading) => exposition(reading, healthchecks.print()))(request),
    ],
    ...(debug ? debugPages(debug) : []),
  ]);
  return (request) => pages.get(request.path)?.(request) ?? NOT_FOUND;
}

/** That this process answers at all; the proxy's own health has a port of its own. */
function healthz({ query }: Request, healthchecks: HealthcheckMetrics): Answer {
  healthchecks.checked('ping', 'healthz', true);
  return plain(200, query.has('verbose') ? '[+]ping ok\nhealthz check passed\n' : 'ok');
}

function reset(healthchecks: HealthcheckMetrics): Answer {
  healthchecks.reset();
  return plain(200, 'metrics reset\n');
}

const zip = promisify(gzip);

async function zipped({ headers }: Request, answer: Answer): Promise<Answer> {
  if (typeof answer.body !== 'string' || !acceptsGzip(headers['accept-encoding'] ?? '')) return answer;
  return {
    ...answer,
    headers: { ...answer.headers, 'Content-Encoding': 'gzip' },
    body: await zip(answer.body),
  };
}

function acceptsGzip(accepted: string): boolean {
  return accepted
    .split(',')
    .map((each) => each.replaceAll(' ', '').toLowerCase())
    .some((each) => each.startsWith('gzip') && !/;q=0(\.0*)?$/.test(each));
}

const WARNING = 'This page is for people; its form may change at any time.';

function flagzText(flags: ReturnType<MetricsPageOptions['flags']>): string {
  const lines = [...flags].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${value}\n`);
  return `\nkube-proxy flagz\n${WARNING}\n\n${lines.join('')}`;
}

function statuszText({ startedAt, now, version }: ReturnType<MetricsPageOptions['status']>): string {
  const lines = [
    `Started: ${startedAt.toUTCString()}`,
    `Up: ${upTime(now.getTime() - startedAt.getTime())}`,
    `Node.js version: ${process.version}`,
    `Binary version: junction ${version}`,
  ];
  return `\nkube-proxy statusz\n${WARNING}\n\n${lines.join('\n')}\n`;
}

function upTime(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}
