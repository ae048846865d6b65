import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type DenialFacts, explainDenial } from '../../lab/denial.ts';
import { labAccess } from '../../lab/privileges.ts';
import { AS_NOBODY } from './demo/program.ts';
import { copyOwner, firstLine, startProgram } from './program.ts';
import { requireLab } from './requireLab.ts';

describe('with no rights at all', () => {
  beforeEach((context) => requireLab(context));

  test('an ordinary user gets the whole lab through a user namespace', async () => {
    const uids = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/);
    if (uids[2] !== '4294967295') {
      // This is a user namespace already; the other tests are the proof.
      expect(labAccess()).toEqual({ kind: 'direct' });
      return;
    }
    const built = copyOwner();
    onTestFinished(() => built.remove());
    const owner = startProgram([...AS_NOBODY, process.execPath, built.file, 'try']);
    onTestFinished(() => void owner.kill('SIGKILL'));
    const report = JSON.parse(await firstLine(owner)) as Record<string, unknown>;
    expect(report).toMatchObject({
      outcome: { outcome: 'answer', reply: { host: 'pod-b', peer: '10.244.1.11' } },
      spawnCode: 0,
      uidMap: ['0', '65534', '1'],
    });
  });
});

describe('what stands in the way', () => {
  const facts: DenialFacts = { isRoot: false, missingTools: [], complaint: '', switches: {} };
  const table: readonly (readonly [string, Partial<DenialFacts>, readonly string[]])[] = [
    ['no unshare', { missingTools: ['unshare', 'nsenter'] }, ['apt-get install util-linux', 'nsenter']],
    [
      'Debian’s switch',
      off('kernel/unprivileged_userns_clone'),
      ['sysctl -w kernel.unprivileged_userns_clone=1'],
    ],
    [
      'Ubuntu’s AppArmor',
      { switches: { 'kernel/apparmor_restrict_unprivileged_userns': '1' } },
      ['sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'],
    ],
    [
      'a container’s root',
      { isRoot: true, complaint: 'unshare: unshare failed: Operation not permitted' },
      ['CAP_SYS_ADMIN', '--privileged', 'Operation not permitted'],
    ],
    [
      'a read-only /proc/sys',
      { complaint: 'sh: 1: cannot create /proc/sys/net/ipv4/ip_forward: Read-only file system' },
      ['/proc/sys cannot be written'],
    ],
    ['something else', { complaint: 'unshare: Operation not permitted' }, ['seccomp', 'run as root']],
  ];

  test.each(table)('%s', (_, known, expected) => {
    const text = explainDenial({ ...facts, ...known }).join(' ');
    for (const part of expected) expect(text).toContain(part);
  });
});

function off(path: string): Partial<DenialFacts> {
  return { switches: { [path]: '0' } };
}
