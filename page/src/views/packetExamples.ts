/** Questions that somebody may ask here, made from the cluster's own services. */
import type { ServiceRow } from '../../../src/explain/types.ts';
import { frontendChoices } from './packetCompletion.ts';
import type { PacketQuestion } from './packetQuestion.ts';
import { settled } from './packetQuestion.ts';

export interface Example {
  readonly title: string;
  readonly question: PacketQuestion;
}

/** At most three, of different services where there are so many: from outside, by a pod or the node, and to what is not ok. */
export function examplesOf(
  rows: readonly ServiceRow[],
  pod: { readonly name: string; readonly service: string } | undefined,
): readonly Example[] {
  const examples: Example[] = [];
  const used = new Set<string>();
  const add = (row: ServiceRow | undefined, from: string, title: (service: string) => string): void => {
    const [first] = row ? frontendChoices(row) : [];
    if (!row || !first) return;
    const dialled = from === 'outside' ? (outerChoice(row) ?? first) : first;
    used.add(row.service);
    const question = settled({ from, to: dialled.value, protocol: '' });
    examples.push({ title: title(row.service), question });
  };
  const isFree = ({ service }: ServiceRow): boolean => !used.has(service);
  const outer =
    rows.find(({ loadBalancerIPs }) => loadBalancerIPs.length > 0) ?? rows.find((row) => outerChoice(row));
  add(outer, 'outside', (service) => `A client outside the cluster dials ${service}`);
  const failing = rows.find((row) => isFree(row) && row.state !== 'ok');
  const inner = rows.find((row) => isFree(row) && row !== failing) ?? rows.find((row) => row !== failing);
  if (pod) add(inner, `pod/${pod.name}`, (service) => `The pod ${pod.name} dials ${service}`);
  else add(inner, 'node', (service) => `This node dials ${service}`);
  add(
    failing ?? rows.find(isFree),
    'node',
    (service) => `This node dials ${service}${failing ? `: ${failing.state}` : ''}`,
  );
  return examples.slice(0, MOST_EXAMPLES);
}

const MOST_EXAMPLES = 3;

function outerChoice(row: ServiceRow): ReturnType<typeof frontendChoices>[number] | undefined {
  const ips = [...row.loadBalancerIPs, ...row.externalIPs];
  return frontendChoices(row).find(({ value }) => ips.some((ip) => value.includes(ip)));
}
