/** A user who may not change the network is told just that, by every command that would. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/checkout.ts';

const PROGRAM = [process.execPath, join(ROOT, 'bin/junction')];
const [, capabilities = '0'] = /^CapEff:\s*(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
/** CAP_NET_ADMIN is number 12. */
const mayChangeNetwork = ((BigInt(`0x${capabilities}`) >> 12n) & 1n) === 1n;
const WITHOUT = mayChangeNetwork ? ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-all', '--'] : [];
const RUN = ['run', '--manifests', join(ROOT, 'examples'), '--hostname-override=node1'];

test.each([
  [RUN],
  [[...RUN, '--proxy-mode=nftables']],
  [[...RUN, '--proxy-mode=ipvs']],
  [[...RUN, '--cleanup']],
  [['cleanup']],
])('%j', (args) => {
  const [program = '', ...words] = [...WITHOUT, ...PROGRAM, ...args];
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  const said = stderr.split('\n').filter((line) => !/^I\d{4} /.test(line));
  expect(said).toEqual([
    'junction: this process may not change the network: it lacks the capability NET_ADMIN (NOT_PERMITTED)',
    '  what to do: Run as root; in a container, privileged or with the capability NET_ADMIN (securityContext.capabilities.add).',
    '',
  ]);
});
