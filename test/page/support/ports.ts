/** Service ports as the page gets them: made from the examples, or from few words. */
import { explainService } from '../../../src/explain/service.ts';
import type {
  EndpointRow,
  PacketExplanation,
  ServiceExplanation,
  ServicePortExplanation,
} from '../../../src/explain/types.ts';
import { parseIp, type Ip } from '../../../src/model/ip.ts';
import type { SourceClass } from '../../../src/plan/types.ts';
import { loadManifests } from '../../../src/sources/manifests/store.ts';
import { subjectOf } from '../../explain/given.ts';
import { NODE1, scenario } from '../../scenarios/scenario.ts';

const EXAMPLES = ['api', 'cart', 'catalog', 'dns', 'idle', 'shopfront', 'web'];

export async function explainedExamples(): Promise<readonly ServiceExplanation[]> {
  const manifests = await loadManifests(['examples']);
  const { settings } = scenario('examples', [], '');
  const subject = subjectOf({ manifests, settings, host: NODE1 });
  return Promise.all(EXAMPLES.map((name) => explainService(subject, { service: `shop/${name}` })));
}

export function endpointRow(number: number, more: Partial<EndpointRow> = {}): EndpointRow {
  return {
    address: `10.244.${Math.floor(number / 250)}.${number % 250}:8080`,
    pod: `web-${number}`,
    node: 'node2',
    isLocal: false,
    servicePort: 'shop/web:http/TCP',
    family: 'IPv4',
    ready: true,
    serving: true,
    terminating: false,
    zoneHints: [],
    nodeHints: [],
    pools: ['cluster'],
    ...more,
  };
}

export function ipOf(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}

export function packetTo(
  destination: string,
  sourceClass: SourceClass,
  more: Partial<PacketExplanation> = {},
): PacketExplanation {
  const sources = { pod: '10.244.0.250', node: '192.168.100.2', outside: '198.51.100.1' };
  return {
    node: 'node1',
    mode: 'nftables',
    family: 'IPv4',
    packet: {
      source: ipOf(sources[sourceClass]),
      destination: ipOf(destination),
      port: 80,
      protocol: 'TCP',
    },
    source: { class: sourceClass, why: 'said so' },
    verdict: 'forwarded',
    reason: 'it forwards',
    frontend: {
      kind: 'clusterIP',
      port: 80,
      service: 'shop/web',
      servicePort: 'shop/web:http/TCP',
      policy: 'internalTrafficPolicy: Cluster',
      others: [],
    },
    pool: 'cluster',
    findings: [],
    endpoints: [],
    leftOut: [],
    ...more,
  };
}

export function servicePort(
  packets: readonly PacketExplanation[],
  endpoints: readonly EndpointRow[],
): ServicePortExplanation {
  return { servicePort: 'shop/web:http/TCP', family: 'IPv4', state: 'ok', packets, endpoints };
}
