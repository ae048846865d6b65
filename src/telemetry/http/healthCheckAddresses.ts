/** On which addresses health-check node ports answer: where node ports do, loopback included if it is in the ranges. */
import { cidrContains, type Ip } from '../../model/ip.ts';
import type { NodePortAddresses } from '../../plan/types.ts';

export function healthCheckAddresses(
  { ranges }: NodePortAddresses,
  ownIps: readonly Ip[],
): 'all' | readonly Ip[] {
  if (ranges === 'all') return 'all';
  return ownIps.filter((ip) => ranges.some((range) => cidrContains(range, ip)));
}
