/** Fields and kinds that Kubernetes does not know, as the commands tell of them, with and without --strict. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { WEB_ENDPOINTS } from './plan.ts';

const file = useFiles();
const JUNCTION = new URL('../../bin/junction', import.meta.url).pathname;

const YAML = `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  clusterIP: 10.96.0.1
  ports:
  - name: http
    port: 80
    protcol: UDP
---
apiVersion: v1
kind: Servce
metadata: { name: other, namespace: shop }
${WEB_ENDPOINTS}`;
const SHOP = file('shop.yaml', YAML);
const GOOD = file('good.yaml', YAML.replace('    protcol: UDP\n', '').replace('Servce', 'ConfigMap'));

const said = (where: string, severity: string): readonly string[] => [
  `${where}:9:5: ${severity}: Service shop/web: unknown field "spec.ports[0].protcol"; did you mean "protocol"?`,
  `${where}:12:7: ${severity}: no matches for kind "Servce" in version "v1"; did you mean "Service"?`,
];

const plan = ['plan', '--manifests', SHOP, '--hostname-override=node-a', '--family=ipv4'] as const;

describe('plan', () => {
  test('warns, and plans for what is known', async () => {
    const { code, out, err } = await junction(...plan);
    expect({ code, err: err.split('\n') }).toEqual({ code: 0, err: [...said(SHOP, 'warning'), ''] });
    expect(out).toContain('-m tcp -p tcp -d 10.96.0.1 --dport 80');
  });

  test.each(['text', 'table', 'json'])('--strict prints nothing as %s', async (output) => {
    const { code, out, err } = await junction(...plan, '--strict', '--output', output);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err.split('\n')).toEqual([
      ...said(SHOP, 'error'),
      'junction: 2 errors above, so nothing is planned',
      '',
    ]);
  });

  test.each(['table', 'json'])('--strict prints nothing as %s of a field alone', async (output) => {
    const field = file('field.yaml', YAML.replace('Servce', 'ConfigMap'));
    const { code, out } = await junction('plan', '--manifests', field, '--strict', '--output', output);
    expect({ code, out }).toEqual({ code: 1, out: '' });
  });

  test('--strict has nothing against what is right', async () => {
    const { code, err } = await junction('plan', '--manifests', GOOD, '--strict');
    expect({ code, err }).toEqual({ code: 0, err: '' });
  });

  test.each(['plan', 'check'])('%s names standard input', async (command) => {
    const child = spawn(process.execPath, [JUNCTION, command, '--manifests', '-', '--strict']);
    child.stdin.end(YAML);
    const ended = new Promise((resolve) => child.once('close', resolve));
    const [code, err] = await Promise.all([ended, text(child.stderr), text(child.stdout)]);
    expect(code).toBe(1);
    expect(err.split('\n').slice(0, 2)).toEqual(said('stdin', 'error'));
  });
});

describe('check', () => {
  const rowOf = (out: string): unknown => (JSON.parse(out) as { readonly checks: unknown[] }).checks[0];

  test('warns', async () => {
    const { out, err } = await junction('check', '--manifests', SHOP, '--output=json');
    expect(err.split('\n')).toEqual([...said(SHOP, 'warning'), '']);
    expect(rowOf(out)).toEqual({
      subject: `manifests ${SHOP}`,
      state: 'present',
      needed: 'always',
      found: '1 Service, 2 EndpointSlices, 0 Nodes, 2 warnings',
      remedy: '',
    });
  });

  test('--strict refuses', async () => {
    const { code, out, err } = await junction('check', '--manifests', SHOP, '--strict', '--output=json');
    expect(code).toBe(1);
    expect(err.split('\n')).toEqual([...said(SHOP, 'error'), '']);
    expect(rowOf(out)).toMatchObject({
      state: 'missing',
      found: '0 Services, 2 EndpointSlices, 0 Nodes, 2 errors',
    });
  });

  test('says which path is not there', async () => {
    const { code, out, err } = await junction('check', '--manifests', '/nowhere', '--output=json');
    expect({ code, err }).toEqual({ code: 1, err: '/nowhere: error: does not exist\n' });
    expect(rowOf(out)).toMatchObject({ state: 'missing' });
  });
});
