/** Elements as they are read, to be written again. */
import { ElementList, type SetElement } from '../../../src/netlink/nftables/elements.ts';

/** For a few, or for those that were read: what the kernel counts is left out. */
export function elementList(elements: Iterable<SetElement>): ElementList {
  const result = new ElementList();
  for (const { key, keyEnd, isIntervalEnd, data, verdict: outcome, comment, timeoutMs } of elements) {
    result.begin().raw(key);
    if (keyEnd) result.rangeEnd().raw(keyEnd);
    if (data) result.data().raw(data);
    if (outcome) result.verdict(outcome);
    if (isIntervalEnd) result.intervalEnd();
    if (timeoutMs !== undefined) result.timeout(timeoutMs);
    if (comment !== undefined) result.comment(comment);
    result.end();
  }
  return result;
}
