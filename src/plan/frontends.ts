/** Finding one frontend among many: a Service may have thousands of addresses, and each of its flows asks for one. */
import type { Ip } from '../model/ip.ts';
import type { Frontend, ServicePortPlan } from './types.ts';

const FEW = 8;

type Index = ReadonlyMap<string, Frontend>;
const indexes = new WeakMap<readonly Frontend[], Index>();

export function frontendAt(
  { frontends }: Pick<ServicePortPlan, 'frontends'>,
  address: Ip | undefined,
  port: number,
): Frontend | undefined {
  if (frontends.length <= FEW)
    return frontends.find((other) => other.address === address && other.port === port);
  let index = indexes.get(frontends);
  if (!index) indexes.set(frontends, (index = indexOf(frontends)));
  return index.get(keyOf(address, port));
}

/** The first of several, like a search from the beginning. */
function indexOf(frontends: readonly Frontend[]): Index {
  const index = new Map<string, Frontend>();
  for (const frontend of frontends) {
    const key = keyOf(frontend.address, frontend.port);
    if (!index.has(key)) index.set(key, frontend);
  }
  return index;
}

function keyOf(address: Ip | undefined, port: number): string {
  return `${address ?? '*'} ${port}`;
}
