/** The DaemonSet that takes Junction's tables off every node, once kube-proxy serves again. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { at, listAt, podOf, readObjects, readText } from './chart.ts';

const pod = podOf(readObjects(readText('deploy/migration/junction-cleanup.yaml')));
const [script = ''] = listAt(pod, 'initContainers', 0, 'args').map(String);
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

test('may do no more than it needs', () => {
  expect(JSON.stringify(pod)).not.toMatch(/"privileged"|hostPID|hostPath/);
  expect(at(pod, 'initContainers', 0, 'securityContext', 'capabilities')).toEqual({
    drop: ['ALL'],
    add: ['NET_ADMIN'],
  });
  expect(at(pod, 'containers', 0, 'securityContext', 'capabilities')).toEqual({ drop: ['ALL'] });
  expect(listAt(pod, 'tolerations')).toEqual([{ operator: 'Exists' }]);
  // kubelet would replace these.
  expect(script).not.toMatch(/\$\$|\$\([A-Za-z_][A-Za-z0-9_]*\)/);
});

test('waits for a proxy, and then removes only what is Junction’s', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'junction-cleanup-'));
  ends.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'junction'), '#!/bin/sh\necho "junction $*"\n');
  writeFileSync(join(folder, 'sleep'), '#!/bin/sh\n');
  for (const name of ['junction', 'sleep']) chmodSync(join(folder, name), 0o755);
  let asked = 0;
  const server = createServer((_, response) => {
    asked++;
    response.writeHead(asked < 3 ? 503 : 200).end();
  });
  ends.push(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const { stdout } = await promisify(execFile)('sh', ['-euc', script.replaceAll('10256/', `${port}/`)], {
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env['PATH']}` },
  });
  expect(asked).toBe(3);
  expect(stdout.split('\n').filter((line) => line.startsWith('junction'))).toEqual([
    'junction cleanup --mode nftables',
  ]);
});
