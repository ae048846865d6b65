/** firewalld throws our rules away when it reloads; they are back long before anybody would have looked. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { FakeFirewalld, MessageBus, requireDbus } from '../system/support/messageBus.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { eventually } from './support/eventually.ts';
import { flushAll, ourRules } from './support/rules.ts';
import { answerers } from './support/traffic.ts';
import { manifests } from './cluster.ts';

const API = '10.96.1.1';
const LEGACY = ['--iptables-variant=legacy', '--iptables-sync-period=1h'];

describe('firewalld', () => {
  const lab = useLab();
  beforeEach((context) => requireDbus(context));

  async function startBus(): Promise<MessageBus> {
    const bus = new MessageBus();
    await bus.start();
    onTestFinished(() => bus.close());
    return bus;
  }

  /**
   * Looks at its rules once an hour, and in the legacy variant no notification comes from the kernel: what comes back
   * sooner has another reason.
   */
  async function startDaemon(bus: MessageBus, ...flags: readonly string[]): Promise<Daemon> {
    const daemon = await Daemon.create(lab().host('node1'), ...LEGACY, ...flags);
    onTestFinished(() => daemon.close());
    await daemon.write(manifests([{ name: 'api', ip: API, ip6: 'fd00:96::1', pods: 'ac' }]));
    await daemon.start({ env: { DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${bus.path}` } });
    return daemon;
  }

  async function rules(): Promise<string> {
    const node = lab().host('node1');
    const save = async (program: string): Promise<string> => await ourRules(node, `${program}-legacy-save`);
    return `${await save('iptables')}\n${await save('ip6tables')}`;
  }

  async function flush(): Promise<void> {
    await flushAll(lab().host('node1'), '-legacy');
    expect((await rules()).trim()).toBe('');
  }

  test('reloads: everything is written again, in both families', async () => {
    const bus = await startBus();
    const firewalld = await FakeFirewalld.start(bus);
    onTestFinished(() => firewalld.stop());
    const daemon = await startDaemon(bus);
    await eventually('it listens', () => daemon.log.includes('Listening for reloads of firewalld'));
    const whole = await rules();
    await flush();
    firewalld.reloaded();
    await eventually('everything again', async () => (await rules()) === whole);
    await eventually('the log', () => daemon.log.includes('why="firewalld reloaded"'));
    expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-c');
  });

  test('starts while the daemon runs', async () => {
    const bus = await startBus();
    const daemon = await startDaemon(bus);
    await eventually('it listens', () => daemon.log.includes('Listening for reloads of firewalld'));
    const whole = await rules();
    await flush();
    const firewalld = await FakeFirewalld.start(bus);
    onTestFinished(() => firewalld.stop());
    await eventually('everything again', async () => (await rules()) === whole);
    await eventually('the log', () => daemon.log.includes('why="firewalld started"'));
    expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-c');
  });

  test('is not listened to where that is not wanted', async () => {
    const bus = await startBus();
    const daemon = await startDaemon(bus, '--firewalld=false');
    await daemon.end('SIGTERM');
    expect(daemon.log).not.toMatch(/reloads of firewalld|D-Bus/);
  });
});
