/** Which fields of the manifests decide what a box of the diagram says. */
import type { DecidingField } from '../../../src/explain/types.ts';
import type { Box } from '../diagram/graph.ts';

/** What a field of a Service decides, by its name. */
const DECIDES: readonly (readonly [field: RegExp, isBox: (box: Box, field: DecidingField) => boolean])[] = [
  [/^spec\.clusterIPs?$/, (box) => isFrontend(box, 'cluster IP')],
  [/^spec\.externalIPs$/, (box) => isFrontend(box, 'external IP')],
  [/^status\.loadBalancer\b/, (box) => isFrontend(box, 'load-balancer IP')],
  [/^spec\.type$/, (box) => box.kind === 'frontend' && !isFrontend(box, 'cluster IP')],
  [/^spec\.ports\b/, (box, { value }) => box.kind === 'frontend' && hasPort(value, box.title)],
  [/^spec\.internalTrafficPolicy$/, (box) => isPolicy(box, 'internalTrafficPolicy')],
  [/^spec\.externalTrafficPolicy$/, (box) => isPolicy(box, 'externalTrafficPolicy')],
  [
    /^spec\.loadBalancerSourceRanges$/,
    ({ kind, lines }) =>
      (kind === 'policy' || kind === 'end') &&
      lines.some((line) => line.includes('loadBalancerSourceRanges')),
  ],
  [
    /^spec\.sessionAffinity/,
    ({ kind, lines }) => kind === 'policy' && lines.some((line) => line.startsWith('affinity')),
  ],
  [/^ports\b/, ({ rows }) => rows !== undefined],
  [/^endpoints\b/, ({ rows = [] }, { value }) => rows.some(({ address }) => hasAddress(value, address))],
];

export function decides(field: DecidingField, box: Box): boolean {
  return DECIDES.some(([name, isBox]) => name.test(field.field) && isBox(box, field));
}

function isFrontend({ kind, lines }: Box, words: string): boolean {
  return kind === 'frontend' && lines[0] === words;
}

/** A Local policy also decides that nothing goes on where no endpoint is on this node. */
function isPolicy({ kind, key, lines }: Box, name: string): boolean {
  if (kind === 'end') return lines[0] === 'no endpoint on this node';
  return kind === 'policy' && key.startsWith(`policy ${name}:`);
}

function hasPort(value: string, address: string): boolean {
  const number = address.slice(address.lastIndexOf(':') + 1);
  return new RegExp(`(?:port|nodePort): ${number}\\b`).test(value);
}

function hasAddress(value: string, address: string): boolean {
  const ip = address.startsWith('[') ? address.slice(1, address.indexOf(']')) : address.replace(/:\d+$/, '');
  return value.includes(`[${ip}]`) || value.includes(`${ip},`);
}
