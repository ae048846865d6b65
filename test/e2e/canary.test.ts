/** The canaries of the legacy variant, of whose changes the kernel notifies nobody: a flush is seen by them, and waited for. */
import { afterEach, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { manifests } from './cluster.ts';
import { Daemon, eventually } from './daemon.ts';
import { flushAll, ourRules } from './support/rules.ts';

const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', pods: 'ac' }]);
const DELETED = 'IPTables canary deleted (table mangle, chain KUBE-PROXY-CANARY)';
const TORN = 'Inconsistent iptables state detected';
const RELOADING = 'Reloading after iptables flush';

const lab = useLab();
let daemon: Daemon | undefined;
afterEach(async () => {
  await daemon?.end('SIGTERM');
  await daemon?.close();
});

test.each([
  ['flushed: all of it comes back', 'flushAll', [DELETED, RELOADING]],
  [
    'mangle alone is flushed: the others are waited for, and not for ever',
    'mangle',
    [DELETED, TORN, RELOADING],
  ],
] as const)('%s', async (_, what, said) => {
  const node = lab().host('node1');
  daemon = await Daemon.create(node, '--iptables-variant=legacy');
  await daemon.write(WORLD);
  await daemon.start();
  const rules = (): Promise<string> => ourRules(node, 'iptables-legacy-save');
  const [made, before] = [daemon, await rules()];
  if (what === 'flushAll') await flushAll(node, '-legacy');
  else
    await node.run(['iptables-legacy-restore', '-w', '60', '-T', 'mangle'], { stdin: '*mangle\nCOMMIT\n' });
  const events = (): readonly string[] =>
    made.log
      .split('\n')
      .filter((line) => line.includes('ipFamily="IPv4"'))
      .flatMap((line) => [DELETED, TORN, RELOADING].filter((each) => line.includes(each)));
  await eventually('it writes everything again', async () => events().includes(RELOADING));
  expect(events()).toEqual(said);
  await eventually('everything is there', async () => (await rules()) === before);
});
