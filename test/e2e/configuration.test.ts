/** The configuration file, and what happens when it changes under a running daemon. */
import { rm } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Session } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Configured, configText, type Fields } from './support/configured.ts';
import { eventually } from './support/eventually.ts';
import { fetchFrom } from './support/fetch.ts';
import { replaceFile } from './support/replaceFile.ts';
import { flushAll, ourRules } from './support/rules.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';

const API = '10.96.1.1';
const NODE_PORT = 30_080;
const SERVICES = [{ name: 'api', ip: API, nodePort: NODE_PORT, pods: 'c' }];

describe('a configuration file that changes', () => {
  const lab = useLab();

  async function start(): Promise<Configured> {
    const made = await Configured.create(lab().host('node1'), SERVICES);
    onTestFinished(() => made.close());
    return made;
  }

  async function started(fields: Fields = {}): Promise<Configured> {
    const made = await start();
    await made.write(fields);
    await made.start();
    return made;
  }

  /** An open connection that has to live through the test. */
  async function openSession(): Promise<Session> {
    const session = await lab().host('pod-b').openSession(API, 80);
    expect((await session.send()).outcome).toBe('answer');
    return session;
  }

  async function expectAlive(session: Session, { program }: Configured): Promise<void> {
    expect((await session.send()).outcome).toBe('answer');
    await session.close();
    expect(program.isRunning).toBe(true);
  }

  const rules = (): Promise<string> => ourRules(lab().host('node1'));

  async function expectRules(text: string): Promise<void> {
    await eventually(`a rule with ${text}`, async () => (await rules()).includes(text));
  }

  /** Who the pod thinks is asking. */
  async function peerSeen(): Promise<string> {
    const outcome = await lab().host('pod-b').request('tcp', API, 80);
    return outcome.outcome === 'answer' ? outcome.reply.peer : outcome.outcome;
  }

  async function configz(): Promise<Readonly<Record<string, Fields>>> {
    const { body } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10249/configz');
    return JSON.parse(body) as Readonly<Record<string, Fields>>;
  }

  describe('of one that runs all the time', () => {
    const shared = useInLab(async () => {
      const made = await Configured.create(lab().host('node1'), SERVICES);
      await made.write();
      await made.start();
      return made;
    });

    /** As it was at its start. */
    async function asBefore(): Promise<Configured> {
      await shared().write();
      await shared().serve(SERVICES);
      await expectRules('! -s 10.244.0.0/16');
      return shared();
    }

    test('clusterCIDR', async () => {
      const made = await asBefore();
      expect(await rules()).toContain('! -s 10.244.0.0/16');
      const session = await openSession();
      await made.write({ clusterCIDR: '10.244.0.0/17,fd00:244::/32' });
      await expectRules('! -s 10.244.0.0/17');
      expect(await rules()).not.toContain('10.244.0.0/16');
      await made.program.says(
        /"Configuration changed" field="clusterCIDR" before="10\.244\.0\.0\/16.*" after="10\.244\.0\.0\/17.*" takesEffect="now"/,
      );
      expect((await configz())['kubeproxy.config.k8s.io']?.['clusterCIDR']).toBe(
        '10.244.0.0/17,fd00:244::/32',
      );
      await expectAlive(session, made);
    });

    test.each([
      ['a value that cannot be', configText({ clusterCIDR: 'everywhere' }), 'everywhere'],
      ['text that is no YAML', 'kind: [KubeProxyConfiguration', 'config.conf'],
      ['nothing', '', 'the file is empty'],
      ['another kind', configText({ kind: 'KubeletConfiguration' }), 'KubeletConfiguration'],
    ])('%s is refused, the old one stays, and the next good one counts', async (_, text, reason) => {
      const made = await asBefore();
      const before = await rules();
      const session = await openSession();
      const from = made.program.log.length;
      await replaceFile(made.file, text);
      await made.program.says('The changed configuration is refused; the old one stays in force', from);
      expect(
        made.program.log
          .slice(from)
          .split('\n')
          .find((line) => line.includes('is refused')),
      ).toContain(reason);
      expect(await rules()).toBe(before);
      await made.write({ clusterCIDR: '10.244.0.0/17' });
      await expectRules('! -s 10.244.0.0/17');
      await expectAlive(session, made);
    });

    test('a file that is gone for a while changes nothing', async () => {
      const made = await asBefore();
      await rm(made.file);
      await made.serve([...SERVICES, { name: 'one', ip: '10.96.1.2', pods: 'a' }]);
      expect(await answerers(lab().host('client'), '10.96.1.2')).toBe('pod-a');
      await made.write({ clusterCIDR: '10.244.0.0/17' });
      await expectRules('! -s 10.244.0.0/17');
    });

    test('the sync period: what is flushed comes back after the new one', async () => {
      const made = await asBefore();
      const whole = await rules();
      await made.write({ iptables: { syncPeriod: '500ms', minSyncPeriod: '100ms' } });
      await made.program.says('after="500ms"');
      await flushAll(lab().host('node1'));
      await eventually('everything again', async () => (await rules()) === whole);
      await made.program.says('Reloading after iptables flush');
      expect(made.program.isRunning).toBe(true);
    });
  });

  describe.each(['iptables', 'nftables'])('in mode %s', (mode) => {
    const periods = { syncPeriod: '60s', minSyncPeriod: '10ms' };

    test('masqueradeAll, another clusterCIDR, nodePortAddresses', async () => {
      const made = await started({ mode, [mode]: periods, nodePortAddresses: ['192.0.2.0/24'] });
      const client = lab().host('client');
      const session = await openSession();
      expect(await peerSeen()).toBe('10.244.1.12');
      expect(await answerers(client, '192.0.2.1', NODE_PORT)).toBe('pod-c');
      expect(await answerers(client, '192.168.100.2', NODE_PORT)).toBe('refused');
      const all = { [mode]: { masqueradeAll: true, ...periods } };
      for (const [fields, seen] of [
        [all, '192.168.100.2'],
        [{}, '10.244.1.12'],
        [{ clusterCIDR: '10.244.2.0/24,fd00:244::/32' }, '192.168.100.2'],
      ] as const) {
        await made.write({ mode, [mode]: periods, ...fields });
        await eventually(`${seen} is seen`, async () => (await peerSeen()) === seen);
      }
      await made.write({ mode, [mode]: periods, nodePortAddresses: ['192.168.100.0/24'] });
      await expectAnswers(client, '192.0.2.1', 'refused', NODE_PORT);
      expect(await answerers(client, '192.168.100.2', NODE_PORT)).toBe('pod-c');
      await made.write({ mode, [mode]: periods, nodePortAddresses: ['0.0.0.0/0', '::/0'] });
      await expectAnswers(client, '192.0.2.1', 'pod-c', NODE_PORT);
      await expectAlive(session, made);
    });
  });

  test('verbosity, of all and of some files', async () => {
    const made = await started();
    await made.serve([...SERVICES, { name: 'one', ip: '10.96.1.2', pods: 'a' }]);
    expect(made.program.log).not.toContain('"Synced rules"');
    for (const [logging, said] of [
      [{ verbosity: 1 }, 'field="logging.verbosity" before="0" after="1"'],
      [{}, 'field="logging.verbosity" before="1" after="0"'],
      [
        { vmodule: [{ filePattern: 'sync*', verbosity: 1 }] },
        'field="logging.vmodule" before="" after="sync*=1"',
      ],
    ] as const) {
      const from = made.program.log.length;
      await made.write({ logging });
      await made.program.says(said);
      await made.serve(SERVICES);
      await made.serve([...SERVICES, { name: 'one', ip: '10.96.1.2', pods: 'a' }]);
      expect(made.program.log.slice(from).includes('"Synced rules"')).toBe(!said.includes('after="0"'));
    }
  });

  test('a ConfigMap volume, whose link is swapped', async () => {
    const made = await start();
    await made.writeAsVolume('2026_01_01');
    await made.start();
    await made.writeAsVolume('2026_01_02', { clusterCIDR: '10.244.0.0/17' });
    await expectRules('! -s 10.244.0.0/17');
    await rm(`${made.directory}/..2026_01_01`, { recursive: true });
    await made.writeAsVolume('2026_01_03', { clusterCIDR: '10.244.0.0/18' });
    await expectRules('! -s 10.244.0.0/18');
  });

  test.each<readonly [string, Fields]>([
    ['healthzBindAddress', { healthzBindAddress: '0.0.0.0:10999' }],
    ['hostnameOverride', { hostnameOverride: 'node7' }],
    ['mode', { mode: 'nftables' }],
  ])('%s needs a new process: it ends and says so, and the rules stay', async (field, fields) => {
    const made = await started();
    const before = await rules();
    await made.write(fields);
    expect(await made.program.ended()).toBe(1);
    expect(made.program.log).toContain(`"Configuration changed" field="${field}"`);
    expect(made.program.log).toContain("content of the proxy server's configuration file was updated");
    expect(await rules()).toBe(before);
    expect(await answerers(lab().host('client'), API)).toBe('pod-c');
  });
});
