/**
 * The same services as kube-proxy's nftables mode has them, written by hand in its shape: one verdict map from a
 * service's address to the service's chain, which draws an endpoint; through `nft -f`.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../../src/system/processes.ts';
import type { EndpointSlice, Service } from '../../src/model/objects.ts';
import { makeService, makeSlice } from '../cluster.ts';
import type { ChainLayout, ChainsRun, ChainsTask, Sizes } from './messages.ts';

const TABLE = 'ip kube-proxy';
const CHANGES = 5;

/** Without services. */
const FRAME = `add table ${TABLE} { comment "rules for kube-proxy" ; }
add set ${TABLE} cluster-ips { type ipv4_addr ; }
add set ${TABLE} hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service ; }
add map ${TABLE} service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ${TABLE} no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict ; }
add chain ${TABLE} mark-for-masquerade
add rule ${TABLE} mark-for-masquerade mark set mark or 0x4000
add chain ${TABLE} masquerading
add rule ${TABLE} masquerading mark and 0x4000 == 0 return
add rule ${TABLE} masquerading mark set mark xor 0x4000
add rule ${TABLE} masquerading masquerade fully-random
add chain ${TABLE} services
add rule ${TABLE} services ip daddr . meta l4proto . th dport vmap @service-ips
add chain ${TABLE} nat-prerouting { type nat hook prerouting priority -100 ; }
add rule ${TABLE} nat-prerouting jump services
add chain ${TABLE} nat-output { type nat hook output priority -100 ; }
add rule ${TABLE} nat-output jump services
add chain ${TABLE} nat-postrouting { type nat hook postrouting priority 100 ; }
add rule ${TABLE} nat-postrouting jump masquerading
`;

export async function measureChains({ sizes, layout }: ChainsTask): Promise<ChainsRun> {
  const text = clusterText(sizes, layout);
  const coldMs = await nft(text);
  const changeMs: number[] = [];
  for (let change = 1; change <= CHANGES; change++) {
    const index = (change * 37) % sizes.services;
    const gone = makeSlice(index, sizes.endpoints);
    const slice = makeSlice(index, sizes.endpoints, change);
    changeMs.push(
      await nft(serviceChains(makeService(index), slice, layout) + goneText(gone, slice, layout)),
    );
  }
  const addMs: number[] = [];
  for (let added = 0; added < CHANGES; added++) {
    const index = sizes.services + added;
    addMs.push(await nft(serviceText(makeService(index), makeSlice(index, sizes.endpoints), layout)));
  }
  return { coldMs, bytes: text.length, changeMs, addMs };
}

export function clusterText({ services, endpoints }: Sizes, layout: ChainLayout): string {
  const parts = [FRAME];
  for (let index = 0; index < services; index++)
    parts.push(serviceText(makeService(index), makeSlice(index, endpoints), layout));
  return parts.join('');
}

export function serviceText(service: Service, slice: EndpointSlice, layout: ChainLayout): string {
  const { IPv4: address } = service.clusterIPs;
  const elements = service.ports.map(
    ({ name, protocol, port }) =>
      `add element ${TABLE} service-ips { ${address} . ${protocol.toLowerCase()} . ${port} : goto ${chainOf(service, name)} }\n`,
  );
  return `${serviceChains(service, slice, layout)}add element ${TABLE} cluster-ips { ${address} }\n${elements.join('')}`;
}

/** A service's own chains, in place of those that it has. */
function serviceChains(service: Service, slice: EndpointSlice, layout: ChainLayout): string {
  return service.ports
    .flatMap(({ name, protocol }) => {
      const chain = chainOf(service, name);
      const l4 = protocol.toLowerCase();
      const targets = targetsOf(slice, name);
      const ensure = (each: string): readonly string[] => [
        `add chain ${TABLE} ${each}`,
        `flush chain ${TABLE} ${each}`,
      ];
      const map = targets.map(([ip, port], index) => `${index} : ${ip} . ${port}`).join(' , ');
      if (layout === 'a chain per service')
        return [
          ...ensure(chain),
          `add rule ${TABLE} ${chain} meta l4proto ${l4} dnat ip addr . port to numgen random mod ${targets.length} map { ${map} }`,
        ];
      const verdicts = targets.map((target, index) => `${index} : goto ${endpointChain(chain, target)}`);
      return [
        ...targets.flatMap((target) => [
          ...ensure(endpointChain(chain, target)),
          `add rule ${TABLE} ${endpointChain(chain, target)} meta l4proto ${l4} dnat to ${target[0]}:${target[1]}`,
        ]),
        ...ensure(chain),
        `add rule ${TABLE} ${chain} numgen random mod ${targets.length} vmap { ${verdicts.join(' , ')} }`,
      ];
    })
    .map((line) => `${line}\n`)
    .join('');
}

/** The chains of endpoints that are gone. kube-proxy empties them first, and deletes them with a later sync. */
function goneText(before: EndpointSlice, after: EndpointSlice, layout: ChainLayout): string {
  if (layout === 'a chain per service') return '';
  const kept = new Set(after.endpoints.map(({ ip }) => ip));
  const chain = `service-${before.namespace}/${before.service}/http`;
  return targetsOf(before, 'http')
    .filter(([ip]) => !kept.has(ip))
    .map((target) => `flush chain ${TABLE} ${endpointChain(chain, target)}\n`)
    .join('');
}

type Target = readonly [ip: EndpointSlice['endpoints'][number]['ip'], port: number];

function targetsOf({ endpoints, ports }: EndpointSlice, name: string): readonly Target[] {
  const port = ports.find((each) => each.name === name)?.port ?? 0;
  return endpoints.map(({ ip }) => [ip, port]);
}

function chainOf({ namespace, name }: Service, port: string): string {
  return `service-${namespace}/${name}/${port}`;
}

function endpointChain(chain: string, [ip, port]: Target): string {
  return `endpoint-${chain.slice('service-'.length)}__${ip}/${port}`;
}

/** From a file, so that nothing but the program is measured. */
export async function nft(text: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'junction-bench-'));
  try {
    const input = join(folder, 'input.nft');
    await writeFile(input, text);
    const started = performance.now();
    const { code, stderr } = await run(['nft', '-f', input]);
    const elapsed = performance.now() - started;
    if (code !== 0) throw new Error(`nft ended with ${code}: ${stderr.slice(0, 500)}`);
    return elapsed;
  } finally {
    await rm(folder, { recursive: true });
  }
}
