/** What docs/ shows of the program is what the program says. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { fillIn, writtenPages } from '../../scripts/samples/pages.ts';
import { main } from '../../src/cli/main.ts';
import { ROOT } from './sources.ts';

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

test('pages with samples are up to date; if not, run: node scripts/docs.mjs', async () => {
  const written = await writtenPages(ROOT);
  expect(written.map(({ path }) => ({ path, text: read(path) }))).toEqual(written);
});

test('a sample that nobody makes is an error', async () => {
  await expect(fillIn('<!-- sample: nothing -->\n```\nx\n```\n', ROOT)).rejects.toThrow('no sample nothing');
});

describe('rules', () => {
  const SEARCH = `apiVersion: v1
kind: Service
metadata: { name: search, namespace: shop }
spec: { clusterIP: 10.96.0.80, ports: [{ name: http, port: 80 }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: search-1, namespace: shop, labels: { kubernetes.io/service-name: search } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.244.1.12], conditions: { ready: true }, nodeName: node1 }]
`;
  const known = new Set<string>();

  async function plan(...args: readonly string[]): Promise<void> {
    let out = '';
    const write = (text: string): void => void (out += text);
    const flags = ['--hostname-override=node1', '--cluster-cidr=10.244.0.0/16', '--family=ipv4'];
    const output = { out: write, painted: write, err: () => {} };
    expect(await main(['plan', ...flags, ...args], output)).toBe(0);
    for (const line of out.split('\n')) known.add(ruleOf(line));
  }

  /** In a change a rule is inserted, and in a plan it is appended; those of shared chains stand in comments. */
  function ruleOf(line: string): string {
    return line.replace(/^# +-t \w+ /, '').replace(/^-I /, '-A ');
  }

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'junction-docs-'));
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return `--manifests=${join(folder, name)}`;
    };
    try {
      const api = read('examples/api.yaml');
      await plan(`--manifests=${join(ROOT, 'examples')}`);
      await plan(`--manifests=${join(ROOT, 'examples')}`, '--iptables-layout=classic');
      await plan(file('search.yaml', SEARCH));
      await plan(file('idle.yaml', SEARCH.replace('ready: true', 'ready: false')));
      await plan(file('api.yaml', api.replace(/.*10\.244\.2\.12.*(?:\n {4,}.*)*\n/, '')));
    } finally {
      rmSync(folder, { recursive: true });
    }
    for (const line of read('test/modes/iptables/rules/golden/current.IPv4.txt').split('\n'))
      known.add(ruleOf(line));
  });

  test.each(['docs/iptables.md', 'docs/iptables-primer.md'])('in %s are those that are written', (path) => {
    const rules = read(path)
      .split('\n')
      .filter((line) => /^-[AI] KUBE-/.test(line));
    expect(rules.length).toBeGreaterThan(0);
    expect(rules.filter((line) => !known.has(ruleOf(line)))).toEqual([]);
  });
});
