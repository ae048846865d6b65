/** What can be meant by the beginning of a source or of a destination, from what exists. */
import type { ServiceRow } from '../../../src/explain/types.ts';
import { KIND_WORDS } from '../../../src/explain/words.ts';
import { hostPort } from '../../../src/model/ip.ts';
import type { FrontendKind } from '../../../src/plan/types.ts';
import { apiPath } from '../address.ts';
import type { NameChoice } from './packetChoices.ts';

/** Asks the API for a list. */
type AskList = <T>(path: string) => Promise<readonly T[]>;

/** More than this nobody reads; who wants another types on. */
const MOST_CHOICES = 50;

const SOURCES: readonly NameChoice[] = [
  { value: 'outside', note: 'a client outside the cluster' },
  { value: 'node', note: 'this node itself' },
  { value: 'pod/', note: 'a pod that is an endpoint of a Service', isPartial: true },
];

export async function sourceChoices(text: string, ask: AskList): Promise<readonly NameChoice[]> {
  const fixed = SOURCES.filter(({ value }) => value.startsWith(text) && value !== text);
  const [, namespace, slash, pod = ''] = /^pods?\/([^/]*)(\/?)([^/]*)$/s.exec(text) ?? [];
  if (namespace === undefined) return fixed;
  if (slash === '') {
    const names = await ask<string>(apiPath(['names'], { kind: 'namespaces', prefix: namespace }));
    return names
      .slice(0, MOST_CHOICES)
      .map((name) => ({ value: `pod/${name}/`, note: 'namespace', isPartial: true }));
  }
  const names = await ask<string>(apiPath(['names'], { kind: 'endpoints', namespace, prefix: pod }));
  // An endpoint without a pod is known by its address.
  return names
    .filter((name) => !ADDRESS.test(name))
    .slice(0, MOST_CHOICES)
    .map((name) => ({ value: `pod/${namespace}/${name}`, note: 'pod' }));
}

/** An IPv4 address, or something with colons. */
const ADDRESS = /^\d+\.\d+\.\d+\.\d+$|:/;
/** Somebody types an address: digits, or brackets. */
const ADDRESS_BEGUN = /^[\d[]/;

export async function destinationChoices(text: string, ask: AskList): Promise<readonly NameChoice[]> {
  const [, typed] = /^(?:svc|services?)\/(.*)$/s.exec(text) ?? [];
  if (typed === undefined && ADDRESS_BEGUN.test(text)) return [];
  const name = typed ?? ('svc/'.startsWith(text) ? '' : text);
  const [prefix = '', port] = name.split(':');
  const names = await ask<string>(apiPath(['names'], { kind: 'services', prefix }));
  const isOne = port !== undefined || (names.length === 1 && names[0] === prefix);
  if (!isOne) return names.slice(0, MOST_CHOICES).map((each) => ({ value: `svc/${each}`, note: 'Service' }));
  const [row] = await ask<ServiceRow>(apiPath(['services'], { service: prefix }));
  if (!row) return [];
  const all = frontendChoices(row);
  const begun = all.filter(({ value }) => value.startsWith(`svc/${name}`) && value !== text);
  return port === undefined ? all.filter(({ value }) => value !== text) : begun;
}

/** `80:30020/TCP` */
const PORT = /^(\d+)(?::(\d+))?\/(\w+)$/;

/** Where a service answers. Node ports are at addresses that the table does not have. */
export function frontendChoices(row: ServiceRow): readonly NameChoice[] {
  const { service, clusterIPs, externalIPs, loadBalancerIPs } = row;
  const ports = row.ports.flatMap((text) => {
    const [, port, , protocol = ''] = PORT.exec(text) ?? [];
    return port === undefined
      ? []
      : [{ port: Number(port), behind: protocol === 'TCP' ? '' : `/${protocol.toLowerCase()}` }];
  });
  const at = (kind: FrontendKind, ips: readonly ServiceRow['clusterIPs'][number][]): readonly NameChoice[] =>
    ips.flatMap((ip) =>
      ports.map(({ port, behind }) => ({
        value: `${hostPort(ip, port)}${behind}`,
        note: `${KIND_WORDS[kind]} of ${service}`,
      })),
    );
  return [
    ...ports.map(({ port, behind }) => ({
      value: `svc/${service}:${port}${behind}`,
      note: `${KIND_WORDS.clusterIP}${clusterIPs.length > 1 ? 's' : ''} of ${service}`,
    })),
    ...at('loadBalancerIP', loadBalancerIPs),
    ...at('externalIP', externalIPs),
    ...at('clusterIP', clusterIPs),
  ];
}
