/** What this node's own Node object decides. */
import { afterAll, describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import type { RawObject } from '../support/apiServer/index.ts';
import { ApiNode } from './support/api/apiNode.ts';
import { startedAndApplied } from './support/applied.ts';
import { eventually } from './support/eventually.ts';
import { fetchFrom, tryFetch } from './support/fetch.ts';
import type { Program } from './support/program.ts';
import { flushAll, ourRules, ourServiceRules } from './support/rules.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { nodeObject, objects } from './cluster.ts';

const API = '10.96.1.1';
const ZONED = objects([
  { name: 'api', ip: API, pods: 'abcd', zones: { a: 'zone-a', b: 'zone-a', c: 'zone-b', d: 'zone-b' } },
]);
const HEALTHZ = 'http://127.0.0.1:10256/healthz';
const LIVEZ = 'http://127.0.0.1:10256/livez';

describe("this node's Node object", () => {
  const lab = useLab();
  const node = useInLab(() => ApiNode.create(lab().host('node1'), [nodeObject(), ...ZONED]));
  let program: Program | undefined;
  let served = '';

  afterAll(() => program?.close());

  async function start(...flags: readonly string[]): Promise<Program> {
    await program?.close();
    program = await node().start('certificate', '--iptables-min-sync-period=0s', ...flags);
    return program;
  }

  async function serve(...flags: readonly string[]): Promise<void> {
    await node().put(nodeObject());
    if (program?.isRunning && flags.join(' ') === served) return;
    served = flags.join(' ');
    await startedAndApplied(await start(...flags), node().socket);
  }

  /** `200 200`: of /healthz and of /livez; why there is no answer, before they listen. */
  async function health(): Promise<string> {
    const answers = [await tryFetch(node().host, HEALTHZ), await tryFetch(node().host, LIVEZ)];
    return answers.map((answer) => (typeof answer === 'string' ? answer : answer.status)).join(' ');
  }

  async function untilHealth(expected: string): Promise<void> {
    await eventually(`health ${expected}`, async () => (await health()) === expected);
  }

  test.each(['iptables', 'nftables'])(
    'its zone and its ranges decide, also when they change (%s)',
    async (mode) => {
      await serve(`--proxy-mode=${mode}`, '--detect-local-mode=NodeCIDR');
      const client = lab().host('client');
      const peerSeen = async (): Promise<string> => {
        const outcome = await lab().host('pod-b').request('tcp', API, 80);
        return outcome.outcome === 'answer' ? outcome.reply.peer : outcome.outcome;
      };
      expect(await answerers(client, API)).toBe('pod-a pod-b');
      await node().put(nodeObject('zone-b'));
      await expectAnswers(client, API, 'pod-c pod-d');
      expect(await peerSeen()).toBe('10.244.1.12');
      await node().put(nodeObject('zone-b', { podCIDRs: ['10.244.7.0/24', 'fd00:244:7::/64'] }));
      await eventually('node1 is seen', async () => (await peerSeen()) === '192.168.100.2');
      await node().put(nodeObject('zone-without-endpoints'));
      await expectAnswers(client, API, 'pod-a pod-b pod-c pod-d');
    },
  );

  test.each<readonly [string, RawObject]>([
    [
      'the cluster autoscaler is about to delete it',
      nodeObject('zone-a', { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] }),
    ],
    [
      'it is being deleted',
      {
        ...nodeObject(),
        metadata: { ...nodeObject().metadata, deletionTimestamp: '2026-01-02T03:04:05Z' },
      },
    ],
  ])(
    '%s: load balancers are sent away, the process is left alone, forwarding goes on',
    async (_, leaving) => {
      await serve();
      await untilHealth('200 200');
      await node().put(leaving);
      await untilHealth('503 200');
      expect(JSON.parse((await fetchFrom(node().host, HEALTHZ)).body)).toMatchObject({
        nodeEligible: false,
        healthy: true,
      });
      expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-b');
      await node().put(nodeObject());
      await untilHealth('200 200');
    },
  );

  test('another taint means nothing', async () => {
    await serve();
    const taints = [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }];
    await node().put(nodeObject('zone-b', { taints }));
    await expectAnswers(lab().host('client'), API, 'pod-c pod-d');
    expect(await health()).toBe('200 200');
  });

  test.each(['ClusterCIDR', 'NodeCIDR'])('it is gone: the rules stay as they are (%s)', async (mode) => {
    await serve(`--detect-local-mode=${mode}`);
    await untilHealth('200 200');
    const rules = await ourRules(node().host);
    await node().server.call('delete', 'Node', 'node1');
    await untilHealth('503 200');
    // Something else is synced, so that what the deletion would have changed is written too.
    await node().applied(...objects([{ name: 'marker', ip: '10.96.1.9', pods: 'a' }]));
    await node().server.call('delete', 'Service', 'shop/marker');
    await eventually('its end', async () => !(await ourRules(node().host)).includes('shop/marker'));
    expect(await ourRules(node().host)).toBe(rules);
  });

  test('it comes late: nothing is written before', async () => {
    await program?.close();
    await flushAll(node().host);
    const late = await start();
    await late.says('"Caches are synced" resource="nodes"');
    await late.says('"Caches are synced" resource="services"');
    await late.says('"Caches are synced" resource="endpointslices"');
    await untilHealth('503 200');
    expect(await ourServiceRules(node().host)).toBe('');

    const { status: _, ...withoutAddress } = nodeObject();
    await node().put(withoutAddress);
    await untilHealth('200 200');
    expect(late.log).not.toContain('"Serving"');

    await node().put(nodeObject());
    await late.serves();
    expect(await answerers(lab().host('client'), API)).toBe('pod-a pod-b');
  });

  test('its ranges are waited for where they are needed', async () => {
    const { podCIDRs: _, ...spec } = nodeObject()['spec'] as { readonly podCIDRs: readonly string[] };
    await node().put({ ...nodeObject(), spec });
    const waiting = await start('--detect-local-mode=NodeCIDR');
    await waiting.says('"Caches are synced" resource="endpointslices"');
    await untilHealth('200 200');
    expect(waiting.log).not.toContain('"Serving"');
    await node().put(nodeObject());
    await waiting.serves();
    expect(await ourRules(node().host)).toContain('! -s 10.244.1.0/24 -d 10.96.1.1/32');
  });
});
