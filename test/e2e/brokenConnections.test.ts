/** Broken connections: the API server is away; and rules that are missing beside a proxy that runs. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { ApiNode } from './support/api/apiNode.ts';
import { ask, expectCauseAndCure, type Answered } from './support/asked.ts';
import { useInLab } from './support/use.ts';
import { manifests, nodeObject, objects } from './cluster.ts';

const WEB = '10.96.1.1';

describe("a node's connection to the API server", () => {
  const lab = useLab();
  const node = useInLab(() =>
    ApiNode.create(lab().host('node1'), [nodeObject(), ...objects([{ name: 'web', ip: WEB, pods: 'ac' }])]),
  );

  test('is down: since when, and what to look at', async () => {
    const { host, server, socket } = node();
    const doctor = (): Promise<Answered> => ask(host, 'doctor', `--api-socket=${socket}`);
    await node().serve('token', '--conntrack-min=0');
    const before = await doctor();
    expect(before.text).toMatch(/^api-server +ok/m);
    expect(before.exitCode).toBe(0);

    server.close();
    await eventually('it notices', async () => (await doctor()).text.includes('cannot be watched'));
    const answered = await doctor();
    expect(answered.exitCode).toBe(1);
    expectCauseAndCure(answered, {
      cause:
        /endpointslices.* cannot be watched: the connection of this node to the API server is down\n +evidence +https:\/\/\S+: .+, for [\d.]+ /i,
      cure: /curl -k https:\/\/\S+\/livez from this node/,
    });
    expectCauseAndCure(answered, { cause: 'the API server does not answer this process', cure: /cure/ });
    expect(answered.text).toContain('the rules stay as they are');
    expect((await lab().host('client').request('tcp', WEB, 80)).outcome).toBe('answer');
  });
});

/** The kernel notifies of no change of the legacy variant's tables: until the next sync period nothing is repaired. */
describe('one rule deleted beside a proxy that runs, iptables-legacy', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node(), '--iptables-variant=legacy', '--iptables-sync-period=1h');
    await made.write(manifests([{ name: 'web', ip: WEB, pods: 'ac' }]));
    await made.start();
    return made;
  });

  test('explain and doctor name it', async () => {
    const client = lab().host('client');
    expect((await client.request('tcp', WEB, 80)).outcome).toBe('answer');
    const rules = (await node().run(['iptables-legacy', '-t', 'nat', '-S', 'KUBE-SERVICES'])).split('\n');
    const rule = rules.find((each) => each.includes(`-d ${WEB}/32`)) ?? '';
    await node().run(['sh', '-c', `iptables-legacy -t nat ${rule.replace(/^-A/, '-D')}`]);
    expect((await client.request('tcp', WEB, 80, { timeoutMs: 3000 })).outcome).not.toBe('answer');

    const socket = `--api-socket=${daemon().socket}`;
    const explained = await ask(node(), 'explain', socket, '--from', 'outside', '--to', `${WEB}:80`);
    expect(explained.exitCode).toBe(5);
    expectCauseAndCure(explained, {
      cause: 'the rules in the kernel are not those that are planned',
      cure: 'A running Junction repairs its rules, at once or within its sync period',
    });
    const found = await ask(node(), 'doctor', socket);
    expectCauseAndCure(found, {
      cause: /missing: .*KUBE-SERVICES.*-d 10\.96\.1\.1/,
      cure: 'junction diff shows all',
    });
  });
});
