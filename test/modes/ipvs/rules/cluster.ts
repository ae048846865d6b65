/** What there is and what is sent, as `ipset save`, `ipvsadm -Sn` and `ip` would write it. */
import type { ServerKey } from '../../../../src/modes/ipvs/rules/compile.ts';
import type { ServerAttributes } from '../../../../src/modes/ipvs/rules/client.ts';
import { hostPort } from '../../../../src/model/ip.ts';

const OPTIONS = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' } as const;
const MH_PORT = 0x10;

function serverArguments({ protocol, ip, port }: ServerKey): string {
  return `${OPTIONS[protocol]} ${hostPort(ip, port)}`;
}

export function printServer(server: ServerAttributes): string {
  const { scheduler, flags, timeout, ip, clientPrefix } = server;
  const isWhole = clientPrefix === (ip.includes(':') ? 128 : 32);
  return [
    `${serverArguments(server)} -s ${scheduler}`,
    ...((flags & 1) !== 0 ? [`-p ${timeout}`] : timeout === 0 ? [] : [`time-out ${timeout}`]),
    ...((flags & MH_PORT) === 0 ? [] : ['-b mh-port']),
    ...((flags & ~(1 | MH_PORT)) === 0 ? [] : [`flags ${flags}`]),
    ...(isWhole ? [] : [`-M ${clientPrefix}`]),
  ].join(' ');
}

function printDestination(server: ServerKey, key: string, weight: number): string {
  return `${serverArguments(server)} -r ${key} -m -w ${weight}`;
}

interface World {
  readonly sets: ReadonlyMap<
    string,
    { readonly type: string; readonly entries: ReadonlyMap<string, unknown> }
  >;
  readonly servers: ReadonlyMap<
    string,
    {
      readonly attributes: ServerAttributes;
      readonly destinations: ReadonlyMap<string, { readonly weight: number }>;
    }
  >;
  readonly device: { readonly addresses: ReadonlySet<string> } | undefined;
}

export function printSets({ sets }: Pick<World, 'sets'>): readonly string[] {
  return [...sets].map(([name, { type }]) => `create ${name} ${type}`).sort();
}

/** Every entry, server, destination and address, in one order whatever the way to it. */
export function printWorld({ sets, servers, device }: World): readonly string[] {
  const entries = [...sets].flatMap(([name, set]) => [...set.entries.keys()].map((key) => `${name} ${key}`));
  const destinations = [...servers.values()].flatMap((server) =>
    [...server.destinations].map(
      ([key, { weight }]) => `-a ${printDestination(server.attributes, key, weight)}`,
    ),
  );
  const made = [...servers.values()].map(({ attributes }) => `-A ${printServer(attributes)}`);
  const addresses = [...(device?.addresses ?? [])].map((ip) => `addr ${ip}`);
  return [...entries, ...made, ...destinations, ...addresses].sort();
}
