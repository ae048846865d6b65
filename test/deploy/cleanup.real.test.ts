/** The DaemonSet that deletes Junction's tables on every node: its containers, in a kernel, beside what answers as kube-proxy does. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { JUNCTION } from '../support/programs.ts';
import { inside, output } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';
import { at, listAt, podOf, readObjects, readText } from './chart.ts';

const pod = podOf(readObjects(readText('deploy/migration/junction-cleanup.yaml')));
const TABLES = 'table ip junction {\n}\ntable ip6 junction {\n}\ntable ip kube-proxy {\n}\n';

test('may do no more than it needs, and needs no shell', () => {
  expect(JSON.stringify(pod)).not.toMatch(/"privileged"|hostPID|hostPath|"command"/);
  for (const container of [at(pod, 'initContainers', 0), at(pod, 'containers', 0)]) {
    expect(at(container, 'securityContext', 'capabilities')).toEqual({ drop: ['ALL'], add: ['NET_ADMIN'] });
    // kubelet would replace these.
    expect(listAt(container, 'args').join(' ')).not.toMatch(/\$/);
  }
  expect(listAt(pod, 'tolerations')).toEqual([{ operator: 'Exists' }]);
});

/** Runs inside the namespace, where kube-proxy's ports are free. */
function steps(initArgs: readonly string[], mainArgs: readonly string[]): string {
  return `
import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
spawnSync('ip', ['link', 'set', 'lo', 'up']);
const tables = () => spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout.trim().split('\\n');
const serve = (port, answer) => new Promise((resolve) => {
  createServer((request, response) => response.end(answer(request.url))).listen(port, '127.0.0.1', resolve).unref();
});
function start(args) {
  const child = spawn(process.execPath, [${JSON.stringify(JUNCTION)}, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const ended = new Promise((resolve) => child.on('close', (code) => resolve(code)));
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { text += chunk; });
  const says = async (words) => {
    while (!text.includes(words)) {
      if (child.exitCode !== null) throw new Error('it ended:\\n' + text);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return tables();
  };
  return { child, ended, says, text: () => text };
}
const metric = (name) => 'kubeproxy_sync_proxy_rules_last_' + name + '_seconds{ip_family="IPv4"} 1.79e+09\\n';
let metrics = metric('queued_timestamp');
const init = start(${JSON.stringify(initArgs)});
const before = await init.says('no service proxy answers at 127.0.0.1:10256');
await serve(10249, () => metrics);
await serve(10256, () => '{}');
const started = await init.says('has not written its rules yet');
metrics += metric('timestamp');
const initCode = await init.ended;
const after = tables();
const main = start(${JSON.stringify(mainArgs)});
await main.says('staying until stopped');
main.child.kill('SIGTERM');
const mainCode = await main.ended;
console.log(JSON.stringify({ before, started, initCode, after, mainCode, mainText: main.text() }));
process.exit(0);`;
}

describe('the containers', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
    await namespace.runner(['nft', '-f', '-'], { stdin: TABLES });
  });
  afterEach(() => namespace.close());

  test('wait until kube-proxy has written its rules, delete what is Junction’s, and stay', async () => {
    const args = (kind: string): readonly string[] => listAt(pod, kind, 0, 'args').map(String);
    const found = await inside(namespace, 'cleanup-steps', steps(args('initContainers'), args('containers')));
    const all = ['table ip junction', 'table ip6 junction', 'table ip kube-proxy'];
    expect(found).toMatchObject({
      before: all,
      started: all,
      initCode: 0,
      after: ['table ip kube-proxy'],
      // Ended by SIGTERM.
      mainCode: 143,
    });
    expect(at(found, 'mainText')).toContain('Nothing of ours was there.');
    expect(await output(namespace, 'nft', 'list', 'tables')).toBe('table ip kube-proxy\n');
  });
});
