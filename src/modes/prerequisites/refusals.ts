/** Refused matches and targets, put into words: one check for each, whatever tables and families it was refused in. */
import type { Table } from '../iptables/rules/rule.ts';
import { absent, type Check } from './check.ts';
import type { Extension } from './extensions.ts';
import type { Machine, TrialDoor } from './machine.ts';
import { moduleRemedy } from './modules.ts';

export interface Refusal {
  readonly extension: Extension;
  readonly door: Pick<TrialDoor, 'family' | 'variant'>;
  readonly table: Table;
  readonly reason: string;
}

/** `total`: how many rules were tried. */
export function refusalChecks(
  machine: Machine,
  refusals: readonly Refusal[],
  total: number,
): readonly Check[] {
  if (isCompatMissing(refusals, total)) return [compatCheck(machine, refusals)];
  const refused = [...new Set(refusals.map(({ extension }) => extension))];
  return refused.map((extension) => {
    const own = refusals.filter((refusal) => refusal.extension === extension);
    return extensionCheck(machine, extension, own);
  });
}

/** The nft variant has every match and target that nftables lacks from one module; without it, hardly any is left. */
function isCompatMissing(refusals: readonly Refusal[], total: number): boolean {
  return refusals.every(({ door }) => door.variant === 'nft') && refusals.length > total / 2;
}

function compatCheck(machine: Machine, refusals: readonly Refusal[]): Check {
  const names = [...new Set(refusals.map(({ extension }) => extension.name))];
  return absent(
    'kernel module nft_compat',
    'always',
    `the kernel refuses most of what iptables has: ${names.join(', ')}`,
    moduleRemedy(machine, ['nft_compat']),
  );
}

function extensionCheck(machine: Machine, extension: Extension, refusals: readonly Refusal[]): Check {
  const places = refusals.map(({ door, table }) => `${table} ${door.family}`);
  const reasons = refusals.map(({ reason }) => reason);
  const reason = reasons.find(isProgramTooOld) ?? reasons[0] ?? '';
  const modules = [...new Set(refusals.map(({ door }) => extension.modules[door.family]))];
  return absent(
    `iptables ${extension.name}`,
    extension.needed,
    `refused in ${[...new Set(places)].join(', ')}: ${reason}`,
    isProgramTooOld(reason)
      ? 'The programs lack it, not the kernel: install the whole package iptables, in a newer version.'
      : `Kernel module${modules.length > 1 ? 's' : ''} ${modules.join(', ')}. ${moduleRemedy(machine, modules)}`,
  );
}

function isProgramTooOld(reason: string): boolean {
  return /Couldn't load (match|target)|(unknown|unrecognized) option/i.test(reason);
}
