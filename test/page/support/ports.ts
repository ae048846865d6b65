/** Answers as the page gets them, from few words. */
import type { EndpointRow, PacketExplanation } from '../../../src/explain/types.ts';
import { parseIp, type Ip } from '../../../src/model/ip.ts';
import type { SourceClass } from '../../../src/plan/types.ts';

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

function ipOf(text: string): Ip {
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
