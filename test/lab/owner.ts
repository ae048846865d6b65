/** A program that owns a lab: tests run it as another user, or kill it. Prints one line about what it made. */
import { readFileSync } from 'node:fs';
import { Lab } from '../../lab/lab.ts';
import { labAccess, reexecInUserNamespace, whyNoLab } from '../../lab/privileges.ts';
import { HOST_NAMES } from '../../lab/topology.ts';

const [mode = '', inside] = process.argv.slice(2);
const access = labAccess();

if (access.kind === 'user-namespace' && inside === undefined) {
  process.exitCode = await reexecInUserNamespace([process.execPath, process.argv[1] ?? '', mode, 'inside'], {
    network: 'machine',
  });
} else if (access.kind !== 'direct') {
  throw new Error(whyNoLab(access));
} else if (mode === 'wait') {
  await waitToBeKilled();
} else {
  await tryOut();
}

async function waitToBeKilled(): Promise<void> {
  const lab = await Lab.start();
  const spawned = lab.host('node1').spawn(['sleep', '600'], { stdio: 'ignore' });
  void lab.host('pod-a').exec(['sh', '-c', 'sleep 600 | cat'], { timeoutMs: 600_000 });
  console.log(JSON.stringify({ hosts: HOST_NAMES.map((name) => lab.host(name).pid), spawned: spawned.pid }));
}

async function tryOut(): Promise<void> {
  const lab = await Lab.start();
  const node1 = lab.host('node1');
  const dnat = ['-d', '10.96.0.1', '-p', 'tcp', '--dport', '80', '-j', 'DNAT', '--to', '10.244.1.12:8080'];
  await node1.run(['iptables', '-t', 'nat', '-A', 'PREROUTING', ...dnat]);
  const outcome = await lab.host('pod-a').request('tcp', '10.96.0.1', 80);
  const spawned = node1.spawn(['ip', 'link', 'show', 'cni0'], { stdio: 'ignore' });
  const spawnCode = await new Promise((resolve) => spawned.once('exit', resolve));
  await lab.close();
  const uidMap = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/);
  console.log(JSON.stringify({ outcome, spawnCode, uidMap }));
}
