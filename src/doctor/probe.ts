/**
 * `--probe`: real connections from this node to endpoints and frontends, and which leg fails. TCP connections are opened
 * and closed without a byte; of UDP an empty datagram is sent, to which only a refusal says something. Nothing else is sent.
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { errorCode } from '../errors.ts';
import { familyOf, hostPort, type Ip } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import { countOf } from '../explain/finding.ts';
import type { FamilySubject } from '../explain/subject.ts';
import { decide } from '../plan/decide.ts';
import type { Frontend, ServicePortPlan } from '../plan/types.ts';
import type { GroupFindings } from './group.ts';

/** `silent`: no answer within the limit; of UDP, that says nothing. */
type LegResult = 'answered' | 'refused' | 'unreachable' | 'silent';

type Dial = (ip: Ip, port: number, protocol: Protocol, limitMs: number) => Promise<LegResult>;

export interface ProbeOptions {
  /** `namespace/name`; unset: a sample of all. */
  readonly service?: string | undefined;
  readonly limitMs: number;
}

const MOST_PORTS = 30;
const MOST_ENDPOINTS = 5;
const MOST_AT_ONCE = 16;

interface Leg {
  readonly ip: Ip;
  readonly port: number;
  readonly result: LegResult;
}

export async function probe(
  group: GroupFindings,
  families: readonly FamilySubject[],
  { service, limitMs }: ProbeOptions,
): Promise<void> {
  const dialAll = bounded(dialOnce, MOST_AT_ONCE);
  for (const family of families) {
    const ports = sample(family, service);
    await Promise.all(
      ports.map((port) => probePort(group, family, port, (...to) => dialAll(...to, limitMs))),
    );
  }
}

/** The first so many of all; they are in the order in which services came. */
function sample({ plan }: FamilySubject, service: string | undefined): readonly ServicePortPlan[] {
  const found: ServicePortPlan[] = [];
  for (const port of plan.servicePorts.values()) {
    if (found.length === MOST_PORTS) break;
    if (service === undefined || port.service === service) found.push(port);
  }
  return found;
}

type DialLeg = (ip: Ip, port: number, protocol: Protocol) => Promise<LegResult>;

async function probePort(
  group: GroupFindings,
  family: FamilySubject,
  port: ServicePortPlan,
  dial: DialLeg,
): Promise<void> {
  const { protocol } = port;
  const name = `${port.name}/${protocol} (${family.plan.family})`;
  if (protocol === 'SCTP') {
    group.notEvaluated(name, 'SCTP is not probed');
    return;
  }
  const frontends = dialled(family, port);
  const pool = port.pools.cluster ?? port.pools.local ?? [];
  const leg = async (ip: Ip, number: number): Promise<Leg> => ({
    ip,
    port: number,
    result: await dial(ip, number, protocol),
  });
  const endpoints = await Promise.all(pool.slice(0, MOST_ENDPOINTS).map((each) => leg(each.ip, each.port)));
  const answers = await Promise.all(frontends.map(({ ip, port: number }) => leg(ip, number)));
  if (frontends.length === 0)
    group.notEvaluated(name, 'the plan forwards nothing that this node sends to it');
  judge(group, { name, protocol, endpoints, frontends: answers });
}

/** Frontends that the plan forwards from this node. */
function dialled(
  { plan, host }: FamilySubject,
  port: ServicePortPlan,
): readonly { readonly ip: Ip; readonly port: number }[] {
  return port.frontends.flatMap((frontend) => {
    const ip = addressOf(frontend, plan.view.nodeIp);
    if (ip === undefined) return [];
    // This node's packets have the address of the interface they leave by; to its own addresses, that address.
    const source = host.addresses.includes(ip) ? ip : (plan.view.nodeIp ?? host.addresses[0]);
    if (source === undefined) return [];
    const packet = {
      source,
      destination: ip,
      protocol: port.protocol,
      port: frontend.port,
      inInterface: undefined,
    };
    return decide(plan, packet, host).verdict === 'forward' ? [{ ip, port: frontend.port }] : [];
  });
}

function addressOf({ address }: Frontend, nodeIp: Ip | undefined): Ip | undefined {
  return address ?? nodeIp;
}

interface Probed {
  readonly name: string;
  readonly protocol: Protocol;
  readonly endpoints: readonly Leg[];
  readonly frontends: readonly Leg[];
}

function judge(group: GroupFindings, { name, protocol, endpoints, frontends }: Probed): void {
  const isFailure = ({ result }: Leg): boolean =>
    result === 'refused' || result === 'unreachable' || (result === 'silent' && protocol === 'TCP');
  const badEndpoints = endpoints.filter(isFailure);
  const badFrontends = frontends.filter(isFailure);
  const evidence = `endpoints: ${listed(endpoints)}; frontends: ${listed(frontends)}`;
  const isEveryEndpointBad = endpoints.length > 0 && badEndpoints.length === endpoints.length;
  if (badFrontends.length > 0 && !isEveryEndpointBad && badEndpoints.length === 0) {
    const [first] = badFrontends;
    group.found({
      code: 'probe-frontend-fails',
      severity: 'error',
      text: `${name}: its endpoints answer directly, ${badFrontends.map(address).join(', ')} not: the rules`,
      evidence,
      consequence: 'clients of this node cannot use the service, though its pods work',
      cure: `junction explain --from node --to ${first ? address(first) : ''}${protocol === 'UDP' ? '/udp' : ''} names the rule; junction diff shows what is missing`,
    });
  } else if (badEndpoints.length > 0) {
    const isRefused = badEndpoints.every(({ result }) => result === 'refused');
    group.found({
      code: 'probe-endpoint-fails',
      severity: isEveryEndpointBad ? 'error' : 'warning',
      text: `${name}: ${badEndpoints.map(address).join(', ')} ${isRefused ? 'refuse' : 'do not answer'} directly: ${isRefused ? 'nothing listens at the target port' : 'the network or the pod'}`,
      evidence,
      consequence: isEveryEndpointBad
        ? 'no connection to the service succeeds from this node'
        : 'a part of the connections to the service fails',
      cure: isRefused
        ? 'kubectl get pods -o wide shows the pods; compare targetPort of the Service with the port that they listen on'
        : `ip route get ${badEndpoints[0]?.ip ?? ''}; kubectl get pods -o wide; a NetworkPolicy that shuts out nodes does the same`,
    });
  } else if (endpoints.length + frontends.length > 0) {
    const silent = [...endpoints, ...frontends].filter(({ result }) => result === 'silent');
    if (silent.length > 0)
      group.notEvaluated(name, `silence at ${silent.map(address).join(', ')} says nothing of UDP`);
    else
      group.fine(
        `${name}: ${countOf(endpoints.length, 'endpoint')} and ${countOf(frontends.length, 'frontend')} answer`,
      );
  }
}

function listed(legs: readonly Leg[]): string {
  return legs.map((leg) => `${address(leg)} ${leg.result}`).join(', ') || 'none';
}

function address({ ip, port }: Pick<Leg, 'ip' | 'port'>): string {
  return hostPort(ip, port);
}

function bounded(dial: Dial, most: number): Dial {
  const waiting: (() => void)[] = [];
  let active = 0;
  return async (...to) => {
    if (active >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    active += 1;
    try {
      return await dial(...to);
    } finally {
      active -= 1;
      waiting.shift()?.();
    }
  };
}

const RESULTS: Readonly<Record<string, LegResult>> = { ECONNREFUSED: 'refused', ETIMEDOUT: 'silent' };

const dialOnce: Dial = (ip, port, protocol, limitMs) =>
  new Promise((resolve) => {
    const failed = (error: unknown): LegResult => RESULTS[errorCode(error) ?? ''] ?? 'unreachable';
    if (protocol === 'UDP') {
      const socket = createSocket(familyOf(ip) === 'IPv4' ? 'udp4' : 'udp6');
      const end = (result: LegResult): void => {
        clearTimeout(timer);
        socket.removeAllListeners();
        socket.on('error', () => undefined);
        socket.close();
        resolve(result);
      };
      const timer = setTimeout(() => end('silent'), limitMs);
      socket.on('message', () => end('answered'));
      socket.on('error', (error) => end(failed(error)));
      socket.connect(port, ip, () => socket.send(new Uint8Array()));
      return;
    }
    const socket = connect({ host: ip, port });
    const end = (result: LegResult): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end('silent'), limitMs);
    socket.once('connect', () => end('answered'));
    socket.on('error', (error) => end(failed(error)));
  });
