/** Whether something of the kernel is what we would have written. */
import type { Family } from '../../model/ip.ts';
import type { BaseChain } from '../../netlink/nftables/objects.ts';
import { propertiesOf, type SetProperties } from '../../netlink/nftables/setSpec.ts';
import type { HookSpec, TableSet } from './rules/table.ts';
import { specOf } from './sets.ts';

/** A set or chain that is part of a rule: it is deleted with the rule, and cannot be deleted by itself. */
export const ANONYMOUS = /^__(?:set|map|chain)\d/;

export function isSameSet(set: TableSet, listed: SetProperties, family: Family): boolean {
  const { flags, keyType, keyBytes, dataType, dataBytes, description, timeoutMs, expression, userData } =
    listed;
  const properties = {
    flags,
    keyType,
    keyBytes,
    dataType,
    dataBytes,
    description,
    timeoutMs,
    expression,
    userData,
  };
  return canonical(propertiesOf(specOf(set, family))) === canonical(properties);
}

export function baseOf({ point, priority }: HookSpec): BaseChain {
  return { type: 'nat', hook: point, priority, policy: 'accept' };
}

/** Equal text for equal values, bytes and large numbers included, whatever the order of their parts. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (part instanceof Uint8Array) return Buffer.from(part).toString('hex');
    if (typeof part === 'bigint') return part.toString();
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
