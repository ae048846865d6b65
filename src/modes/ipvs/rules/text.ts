/** Virtual servers as `ipvsadm` writes them. */
import { hostPort } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { ServerAttributes } from './client.ts';
import { MH_PORT, type ServerKey } from './compile.ts';

const SERVER_OPTIONS: Readonly<Record<Protocol, string>> = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' };

/** `-A -t 10.96.0.1:80 -s rr -p 10800` */
export function printServerLine(server: ServerAttributes): string {
  const { scheduler, timeout, flags } = server;
  const persistence = timeout === 0 ? '' : ` -p ${timeout}`;
  const schedulerFlags = (flags & MH_PORT) === 0 ? '' : ' -b mh-port';
  return `-A ${nameOf(server)} -s ${scheduler}${persistence}${schedulerFlags}`;
}

/** `-a -t 10.96.0.1:80 -r 10.244.0.1:8080 -m -w 1` */
export function printDestinationLine(server: ServerKey, key: string, weight: number): string {
  return `-a ${nameOf(server)} -r ${key} -m -w ${weight}`;
}

function nameOf({ protocol, ip, port }: ServerKey): string {
  return `${SERVER_OPTIONS[protocol]} ${hostPort(ip, port)}`;
}
