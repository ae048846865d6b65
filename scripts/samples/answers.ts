/** What `explain`, `services` and `endpoints` say of the examples; where the kernel has a word, it is one in memory. */
import { join } from 'node:path';
import { main } from '../../src/cli/main.ts';
import { explainPackets, type PacketQuestion } from '../../src/explain/packet.ts';
import { printPacket } from '../../src/explain/print.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import { objectKey } from '../../src/model/objects.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { loadManifests } from '../../src/sources/manifests/source.ts';
import { fakeMode, writtenSubject } from '../../test/explain/mechanisms.ts';
import { POD_NETWORK } from '../../test/scenarios/scenario.ts';

type Sample = (root: string) => Promise<string>;

const NODE = ['--hostname-override', 'node1'];
const CIDR = ['--cluster-cidr', '10.244.0.0/16'];

export const ANSWERS: Readonly<Record<string, Sample>> = {
  'explain-allowed': commandSample(['explain', '--from', '192.0.2.10', '--to', '203.0.113.10:80', ...CIDR]),
  'explain-rejected': commandSample([
    'explain',
    '--from',
    'pod/shop/pod-a',
    '--to',
    'svc/shop/idle',
    ...CIDR,
  ]),
  'explain-no-service': commandSample([
    'explain',
    '--from',
    'pod/shop/pod-a',
    '--to',
    '10.96.0.10:81',
    ...CIDR,
  ]),
  'explain-service': commandSample(['explain', 'shop/web', ...CIDR]),
  services: commandSample(['services']),
  endpoints: commandSample(['endpoints', 'shop/idle']),
  'diff-nodes': commandSample(['diff', '--to-hostname-override', 'node2', '--family', 'ipv4', ...CIDR]),
  'explain-kernel-iptables': kernelSample('current', { from: '198.18.0.10', to: '203.0.113.10:80' }),
  'explain-kernel-ipvs': kernelSample('ipvs', { from: 'pod/shop/pod-b', to: 'svc/shop/cart' }),
  'explain-kernel-nftables': kernelSample('nftables', { from: 'node', to: '192.168.100.2:30080' }),
};

/** As typed in a clone. */
function commandSample(words: readonly string[]): Sample {
  return async (root) => {
    let text = '';
    const write = (part: string): void => void (text += part);
    const output = { out: write, painted: write, err: write };
    const code = await main([...words, '--manifests', join(root, 'examples'), ...NODE], output);
    const typed = ['junction', ...words, '--manifests', 'examples', ...NODE].join(' ');
    return `$ ${typed}\n${text.replaceAll(`${root}/`, '')}$ echo $?\n${code}\n`;
  };
}

/** As a running proxy answers. */
function kernelSample(mechanism: Mechanism, question: PacketQuestion): Sample {
  return async (root) => {
    const subject = await examplesSubject(mechanism, root);
    const answers = await explainPackets(subject, question);
    const style = { paint: (_: unknown, text: string): string => text, columns: 100, now: subject.now() + 4 };
    const printed = answers.map((answer) => printPacket(answer, style)).join('\n');
    return `$ junction explain --from ${question.from} --to ${question.to}\n${printed}`;
  };
}

/** The examples on node1, written to a kernel in memory. */
export async function examplesSubject(mechanism: Mechanism, root: string): Promise<Subject> {
  const { services, slices, nodes } = await loadManifests([join(root, 'examples')]);
  const mode = await fakeMode(mechanism, 'IPv4');
  const settings = {
    nodeName: 'node1',
    bindAddress: undefined,
    detectLocal: POD_NETWORK,
    masqueradeAll: false,
    nodePortAddresses: [],
    localhostNodePorts: mechanism === 'current',
  };
  const proxy = new Proxier({ family: 'IPv4', settings, writer: mode.writer });
  for (const each of services) proxy.onService(objectKey(each.namespace, each.name), each);
  for (const each of slices) proxy.onEndpointSlice(objectKey(each.namespace, each.name), each);
  proxy.onNode(nodes.find(({ name }) => name === 'node1'));
  proxy.onSynced();
  await proxy.sync();
  return { ...(await writtenSubject(mode, proxy)), detectLocal: POD_NETWORK.mode };
}
