/** The ports that tell about the proxy, asked as probes and scrapers ask. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { VERSION } from '../../src/version.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, FLAGS } from './daemon.ts';
import { type Answer, fetchFrom, tryFetch } from './support/fetch.ts';
import { runProgram } from './support/program.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

describe('the ports that tell about the proxy', () => {
  const lab = useLab();
  const daemon = useInLab(async () => {
    const made = await Daemon.create(lab().host('node1'));
    await made.write(manifests([{ name: 'web', ip: '10.96.1.1', pods: 'ac' }]));
    await made.start();
    return made;
  });
  const health = (path: string): Promise<Answer> =>
    fetchFrom(lab().host('node1'), `http://127.0.0.1:10256${path}`);
  const metrics = (path: string, method?: string): Promise<Answer> =>
    fetchFrom(lab().host('node1'), `http://127.0.0.1:10249${path}`, method);

  test.each([
    ['/healthz', { nodeEligible: true }],
    ['/livez', {}],
  ])('%s', async (path, more) => {
    const { status, headers, body } = await health(path);
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json');
    expect(headers['x-content-type-options']).toBe('nosniff');
    const time = expect.stringMatching(TIME) as string;
    const family = { lastUpdated: time, healthy: true };
    const parsed = JSON.parse(body) as object;
    expect(parsed).toStrictEqual({
      lastUpdated: time,
      currentTime: time,
      ...more,
      healthy: true,
      status: { IPv4: family, IPv6: family },
    });
    expect(body).toBe(JSON.stringify(parsed));
    expect(Object.keys(parsed)).toEqual([
      'lastUpdated',
      'currentTime',
      ...Object.keys(more),
      'healthy',
      'status',
    ]);
  });

  test('health is told in both families and to the outside, metrics to the node alone', async () => {
    const client = lab().host('client');
    for (const address of ['192.0.2.1', '[2001:db8:1::1]']) {
      expect((await fetchFrom(client, `http://${address}:10256/healthz`)).status).toBe(200);
      expect(await tryFetch(client, `http://${address}:10249/metrics`)).toBe('ECONNREFUSED');
    }
  });

  test.each(['/', '/metrics', '/healthz/', '/Healthz', '/healthz/ping'])(
    'the health port has no %s',
    async (path) => {
      const { status, headers, body } = await health(path);
      expect([status, body]).toEqual([404, '404 page not found\n']);
      expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    },
  );

  test.each(['/', '/livez', '/nothing', '/debug/pprof/', '/debug/flags/v'])(
    'the metrics port has no %s',
    async (path) => {
      expect((await metrics(path)).status).toBe(404);
    },
  );

  test.each([
    ['/healthz', 'ok'],
    ['/healthz/ping', 'ok'],
    ['/healthz?verbose', '[+]ping ok\nhealthz check passed\n'],
    ['/proxyMode', 'iptables'],
  ])('%s on the metrics port', async (path, expected) => {
    const { status, headers, body } = await metrics(path);
    expect([status, body]).toEqual([200, expected]);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(headers['x-content-type-options']).toBe('nosniff');
  });

  test('/configz is what --write-config-to writes', async () => {
    const { status, headers, body } = await metrics('/configz');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json');
    const file = join(daemon().manifests, 'written.conf');
    const { manifests, socket } = daemon();
    const flags = [...FLAGS, `--api-socket=${socket}`, `--write-config-to=${file}`];
    const args = ['--manifests', manifests, ...flags];
    expect((await runProgram(lab().host('node1'), ...args)).exitCode).toBe(0);
    const shown = JSON.parse(body) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    expect(shown).toStrictEqual({
      'kubeproxy.config.k8s.io': parse(await readFile(file, 'utf8')) as unknown,
    });
    expect(shown['kubeproxy.config.k8s.io']).toMatchObject({
      kind: 'KubeProxyConfiguration',
      clusterCIDR: '10.244.0.0/16,fd00:244::/32',
      mode: 'iptables',
      iptables: { syncPeriod: '500ms', minSyncPeriod: '0s' },
    });
  });

  test('/statusz and /flagz', async () => {
    expect((await metrics('/statusz')).body).toContain(VERSION);
    expect((await metrics('/flagz')).body).toContain('hostname-override=node1');
  });
});
