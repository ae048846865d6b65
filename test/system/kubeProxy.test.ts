import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { findKubeProxyProcesses } from '../../src/system/kubeProxy.ts';

let proc = '';
afterEach(() => rmSync(proc, { recursive: true, force: true }));

function process(pid: string, comm: string, cmdline: string, net: string): void {
  mkdirSync(join(proc, pid, 'ns'), { recursive: true });
  writeFileSync(join(proc, pid, 'comm'), `${comm}\n`);
  writeFileSync(join(proc, pid, 'cmdline'), cmdline);
  symlinkSync(net, join(proc, pid, 'ns', 'net'));
}

test('a kube-proxy counts where it has our network', () => {
  proc = mkdtempSync(join(tmpdir(), 'junction-proc-'));
  process('self', 'node', 'node\0junction\0', 'net:[1]');
  process('10', 'kube-proxy', '/usr/local/bin/kube-proxy\0--config=/x\0', 'net:[1]');
  process('11', 'kube-proxy', 'kube-proxy\0', 'net:[2]');
  process('12', 'node', 'node\0/usr/local/bin/kube-proxy\0', 'net:[1]');
  mkdirSync(join(proc, '13'));
  expect(findKubeProxyProcesses(proc)).toEqual(['pid 10 (/usr/local/bin/kube-proxy --config=/x)']);
});
