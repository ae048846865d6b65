/** `spec.loadBalancerSourceRanges` of a Service. */
import type { Cidr } from '../ip.ts';
import { NO_CIDRS, readCidrLeniently, readEach } from './addresses.ts';
import type { Cursor } from './cursor.ts';

/**
 * Ranges that cannot be read are left out, as upstream does. `undefined`: ranges are given and none could be read.
 * Upstream then lets everybody in, which is not what somebody wrote who wanted to restrict it.
 */
export function readSourceRanges(spec: Cursor): readonly Cidr[] | undefined {
  const items = spec.list('loadBalancerSourceRanges');
  const ranges = readEach(items, NO_CIDRS, readCidrLeniently);
  const written = items.some((at) => typeof at.value === 'string' && at.value.trim() !== '');
  if (!written || ranges.length > 0) return ranges;
  spec
    .field('loadBalancerSourceRanges')
    .warn(
      'has no valid range; the load-balancer addresses are not served',
      'at least one CIDR such as 192.0.2.0/24',
    );
  return undefined;
}
