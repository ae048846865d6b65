/** Commands of docs/recipes/ that say that the tests run them, taken from the pages and run on a node of the lab. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { nodeObject, objects } from '../e2e/cluster.ts';
import { ApiNode } from '../e2e/support/api/apiNode.ts';
import { fetchFrom } from '../e2e/support/fetch.ts';
import { ourRules } from '../e2e/support/rules.ts';
import { expectAnswers } from '../e2e/support/traffic.ts';
import { useInLab } from '../e2e/support/use.ts';
import { RecipeNode } from './recipeNode.ts';
import { junctionCommands, RECIPE_BLOCKS, recipeBlocks, type RecipeBlock } from './recipes.ts';
import { STATIC_POD_FOLDER } from './plainManifests.ts';

const SERVICE = '10.96.1.1';
/** The fields of kubeadm's that are not Junction's defaults, as kubeadm writes them. */
const KUBEADM_CONFIG = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection: { acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0 }
clusterCIDR: 10.244.0.0/16,fd00:244::/32
configSyncPeriod: 0s
conntrack: { maxPerCore: null, min: null, tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null }
detectLocalMode: ""
healthzBindAddress: ""
hostnameOverride: ""
iptables: { localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s }
metricsBindAddress: ""
mode: ""
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
`;

/** Columns are as wide as their contents. */
function withoutSpaces(text: string): string {
  return text.trim().replaceAll(/ +/g, ' ');
}

function runBlocks(page: string): readonly RecipeBlock[] {
  return recipeBlocks(page).filter(({ mark }) => mark === 'tests');
}

function blockWith(page: string, words: string): string {
  const [block, ...others] = runBlocks(page).filter(({ text }) => text.includes(words));
  if (!block || others.length > 0) throw new Error(`${page} has not one block that is run with ${words}`);
  return block.text;
}

describe('recipes', () => {
  const lab = useLab();
  const api = useInLab(() =>
    ApiNode.create(lab().host('node1'), [
      nodeObject(),
      ...objects([{ name: 'api', ip: SERVICE, pods: 'ac' }]),
    ]),
  );
  const node = useInLab(() => RecipeNode.create(lab().host('node1')));
  const done = new Set<string>();

  async function paste(page: string, words: string, code = 0): Promise<string> {
    const text = blockWith(page, words);
    done.add(text);
    const { exitCode, stdout, stderr } = await node().run(text);
    expect([text, exitCode, exitCode === code ? '' : stderr + stdout]).toEqual([text, code, '']);
    await node().reconcile();
    return stdout;
  }

  test('static pod: the kernel can do it', async () => {
    expect(await paste('static-pod.md', 'junction check')).toContain('iptables mode can run here.');
  });

  test('static pod: what would change, before anything does', async () => {
    await paste('static-pod.md', 'mkdir -p -m 700');
    await node().write(`${STATIC_POD_FOLDER}/config.conf`, KUBEADM_CONFIG);
    const kubeconfig = readFileSync(await api().writeKubeconfig('certificate'), 'utf8');
    await node().write(`${STATIC_POD_FOLDER}/kubeconfig.conf`, kubeconfig);
    // No proxy has run here yet.
    expect(await paste('static-pod.md', 'junction diff', 1)).toContain('shop/api');
    expect(await ourRules(lab().host('node1'))).toBe('');
  });

  test('static pod: kubelet starts it from the file, and services work', async () => {
    await paste('static-pod.md', 'cp deploy/manifests/junction-static-pod.yaml');
    await expectAnswers(lab().host('client'), SERVICE, 'pod-a pod-c');
    const { status } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10256/healthz');
    expect(status).toBe(200);
  });

  const looks = [
    ...new Set(RECIPE_BLOCKS.filter(({ mark }) => mark === 'testsFromJunction').flatMap(junctionCommands)),
  ];

  test('there are commands to look with', () => expect(looks.length).toBeGreaterThan(4));

  test.each(looks)('every page: %s', async (command) => {
    const { exitCode, stdout, stderr } = await node().exec(command);
    expect([command, exitCode, stderr]).toEqual([command, 0, '']);
    expect(stdout.length).toBeGreaterThan(20);
  });

  test('static pod: the table of services is the one on the page', async () => {
    const shown = recipeBlocks('static-pod.md').find(({ text }) => text.startsWith('SERVICE '));
    const { stdout } = await node().exec('junction services');
    expect(withoutSpaces(stdout)).toBe(withoutSpaces(shown?.text ?? ''));
  });

  test('static pod: back in one command; the rules stay, and services work', async () => {
    await paste('static-pod.md', 'rm /etc/kubernetes/manifests/junction.yaml');
    await expectAnswers(lab().host('client'), SERVICE, 'pod-a pod-c');
    await paste('static-pod.md', 'junction cleanup');
    expect(await ourRules(lab().host('node1'))).not.toContain('KUBE-SVC');
  });

  test('k3s: the switch is set, and taken out again', async () => {
    expect(await paste('k3s.md', 'grep', 2)).toBe('');
    await paste('k3s.md', 'disable-kube-proxy: true');
    const file = 'cat /etc/rancher/k3s/config.yaml';
    expect((await node().run(file)).stdout).toBe('disable-kube-proxy: true\n');
    await paste('k3s.md', 'sed -i');
    expect((await node().run(file)).stdout).toBe('');
  });

  test('every block that is said to be run was run', () => {
    // test/ship/systemd.real.test.ts runs those of that page.
    const others = RECIPE_BLOCKS.filter(({ page, mark }) => mark === 'tests' && page !== 'systemd.md');
    expect(others.filter(({ text }) => !done.has(text))).toEqual([]);
  });
});
