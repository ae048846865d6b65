/** `spec.loadBalancerSourceRanges` of a Service. */
import type { Cidr } from '../ip.ts';
import { NO_CIDRS, readCidrLeniently, readEach } from './addresses.ts';
import type { Cursor } from './cursor.ts';

/**
 * Ranges that cannot be read are left out, as upstream does. But when none is left the service would be open to
 * everybody, which is not what somebody wrote who wanted to restrict it; so that is refused.
 */
export function readSourceRanges(spec: Cursor): readonly Cidr[] {
  const items = spec.list('loadBalancerSourceRanges');
  const ranges = readEach(items, NO_CIDRS, readCidrLeniently);
  const written = items.some((at) => typeof at.value === 'string' && at.value.trim() !== '');
  if (written && ranges.length === 0) {
    spec
      .field('loadBalancerSourceRanges')
      .refuse('has no valid range', 'at least one CIDR such as 192.0.2.0/24');
  }
  return ranges;
}
