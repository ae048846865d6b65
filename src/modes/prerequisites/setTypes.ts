/** The types of sets that IPVS mode makes. */
import type { Family } from '../../model/ip.ts';
import { IPSET_TYPES, type IpsetType } from '../../netlink/ipsetEntry.ts';
import { absent, type Check, present } from './check.ts';
import type { Machine } from './machine.ts';
import { moduleRemedy, tryWithModule } from './modules.ts';

interface Lack {
  readonly type: IpsetType;
  readonly module: string;
  readonly reason: string;
}

export async function setTypeChecks(
  machine: Machine,
  families: readonly Family[],
): Promise<readonly Check[]> {
  const lacks = new Map<IpsetType, Lack>();
  for (const type of IPSET_TYPES) {
    const lack = await lackOf(machine, type, families);
    if (lack) lacks.set(type, lack);
  }
  const there = IPSET_TYPES.filter((type) => !lacks.has(type));
  const missing = [...lacks.values()];
  return [
    ...(there.length > 0 ? [present('ipset types', 'always', there.join('; '))] : []),
    ...(missing.length > 0 ? [lackCheck(machine, missing)] : []),
  ];
}

async function lackOf(
  machine: Machine,
  type: IpsetType,
  families: readonly Family[],
): Promise<Lack | undefined> {
  for (const family of families) {
    const support = machine.setType(type, family);
    if (support.state === 'present') continue;
    const { module } = support;
    const trial = await tryWithModule(machine, module, () => {
      const { state, ...rest } = machine.setType(type, family);
      return state === 'present'
        ? { state: 'done' }
        : { state: 'refused', reason: 'reason' in rest ? rest.reason : '' };
    });
    if (trial.state === 'refused') return { type, module, reason: trial.reason };
  }
  return undefined;
}

function lackCheck(machine: Machine, lacks: readonly Lack[]): Check {
  const modules = lacks.map(({ module }) => module);
  return absent(
    `kernel module${modules.length > 1 ? 's' : ''} ${modules.join(', ')}`,
    'always',
    `no sets of the type ${lacks.map(({ type }) => type).join('; ')}: ${lacks[0]?.reason ?? ''}`,
    moduleRemedy(machine, modules),
  );
}
