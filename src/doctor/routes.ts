/** Whether the kernel has a route to endpoints: one of each node is asked for, since pods of a node share theirs. */
import { familyOf, type Family, hostPort, type Ip } from '../model/ip.ts';
import type { GroupFindings } from './group.ts';
import type { DoctorMachine, RouteLook } from './machine.ts';

export interface SampledEndpoint {
  readonly ip: Ip;
  readonly port: number;
  /** `shop/web` */
  readonly service: string;
  readonly node: string | undefined;
  readonly isLocal: boolean;
}

const MOST = 200;
const OUTSIDE: Readonly<Record<Family, Ip>> = { IPv4: '198.51.100.1' as Ip, IPv6: '2001:db8::1' as Ip };

/** The kernel's errors in words. */
const REASONS: Readonly<Record<string, string>> = {
  ENETUNREACH: 'there is no route',
  EHOSTUNREACH: 'the route says unreachable',
  EINVAL: 'the route says blackhole',
  EACCES: 'the route says prohibit',
};

export async function checkRoutes(
  group: GroupFindings,
  machine: Pick<DoctorMachine, 'route'>,
  endpoints: Iterable<SampledEndpoint>,
): Promise<void> {
  const asked = oneOfEachNode(endpoints);
  if (asked.length === 0) {
    group.notEvaluated('routes to endpoints', 'no endpoints are known');
    return;
  }
  const defaults = new Map<Family, RouteLook>();
  let good = 0;
  for (const endpoint of asked) {
    const look = await machine.route(endpoint.ip);
    const family = familyOf(endpoint.ip);
    const outside = defaults.get(family) ?? (await machine.route(OUTSIDE[family]));
    defaults.set(family, outside);
    if (report(group, endpoint, look, outside)) good += 1;
  }
  if (good > 0) group.fine(`${good} of ${asked.length} endpoints asked for have a route`);
}

function oneOfEachNode(endpoints: Iterable<SampledEndpoint>): readonly SampledEndpoint[] {
  const byNode = new Map<string, SampledEndpoint>();
  for (const endpoint of endpoints) {
    if (byNode.size === MOST) break;
    const key = `${familyOf(endpoint.ip)} ${endpoint.node ?? endpoint.ip}`;
    if (!byNode.has(key)) byNode.set(key, endpoint);
  }
  return [...byNode.values()];
}

/** Returns whether the route is good. */
function report(
  group: GroupFindings,
  { ip, port, service, node, isLocal }: SampledEndpoint,
  look: RouteLook,
  outside: RouteLook,
): boolean {
  const where = node === undefined ? '' : ` on ${node}`;
  const subject = `endpoint ${hostPort(ip, port)} of ${service}${where}`;
  const cure = `the network plugin (CNI) writes these routes: look at its pod on this node${isLocal || node === undefined ? '' : ` and on ${node}`}; ip route get ${ip}`;
  if (look.state === 'refused') {
    group.found({
      code: 'no-route-to-endpoint',
      severity: 'error',
      text: `no route to the ${subject}`,
      evidence: `ip route get ${ip}: ${REASONS[look.errno] ?? look.errno} (${look.errno})`,
      consequence: `connections that this node sends to endpoints${where} fail, whatever the service`,
      cure,
    });
    return false;
  }
  const isDefault =
    outside.state === 'found' &&
    outside.gateway !== undefined &&
    look.gateway === outside.gateway &&
    look.outLink === outside.outLink;
  if (isLocal && isDefault) {
    group.found({
      code: 'local-endpoint-by-default-route',
      severity: 'error',
      text: `the ${subject} is local, and its route leaves this node`,
      evidence: `ip route get ${ip}: by the default route, via ${outside.gateway ?? ''}`,
      consequence: 'packets to local pods are sent to the gateway, which does not know them',
      cure,
    });
    return false;
  }
  return true;
}
