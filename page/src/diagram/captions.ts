/** What is said about a box: the sentences of `explain`, those that concern it. */
import { countOf } from '../../../src/explain/finding.ts';
import { factsOf, ifAllowedFact, masqueradeWords } from '../../../src/explain/packetText.ts';
import {
  endpointWords,
  fateOf,
  frontendWords,
  placeWords,
  sourceLines,
  sourceWords,
} from '../../../src/explain/serviceWords.ts';
import type {
  EndpointRow,
  Finding,
  PacketExplanation,
  ServicePortExplanation,
} from '../../../src/explain/types.ts';
import { percent } from '../../../src/explain/words.ts';
import type { Box } from './graph.ts';

export interface Caption {
  readonly title: string;
  readonly aside?: string;
  readonly lines: readonly CaptionLine[];
}

interface CaptionLine {
  readonly label: string;
  readonly text: string;
  /** The packet that it is about. */
  readonly packet?: PacketExplanation;
}

/** While nothing is pointed at: what the classes of sources are on this node. */
export function portCaption({ servicePort, family, state, packets }: ServicePortExplanation): Caption {
  return { title: `${servicePort}, ${family}`, aside: state, lines: sourceLines(packets) };
}

/** Endpoints of a group that are named one by one. */
const MOST_NAMED = 8;

export function captionOf(box: Box, port: ServicePortExplanation): Caption {
  const packets = box.packets.flatMap((index) => port.packets[index] ?? []);
  switch (box.kind) {
    case 'source':
      return sourceCaption(packets);
    case 'frontend':
      return frontendCaption(box, packets);
    case 'policy':
      return policyCaption(box, packets);
    case 'pool':
      return { title: `${box.title}: ${box.lines.join(', ')}`, lines: ways(packets) };
    case 'end':
      return endCaption(packets);
    case 'endpoint':
    case 'group':
      return endpointCaption(box, packets);
  }
}

function sourceCaption(packets: readonly PacketExplanation[]): Caption {
  const [first] = packets;
  return {
    title: first ? `${first.source.class}: ${first.source.why}` : '',
    lines: packets.map((packet) => ({ label: frontendWords(packet), text: fateOf(packet), packet })),
  };
}

function frontendCaption({ title, lines }: Box, packets: readonly PacketExplanation[]): Caption {
  const [first] = packets;
  const words = new Set(packets.map(frontendWords));
  if (!first || words.size !== 1) return { title: [title, ...lines].join(', '), lines: [] };
  return {
    title: frontendWords(first),
    ...(first.frontend && { aside: first.frontend.policy }),
    lines: packets.map((packet) => ({ label: sourceWords(packet, packets), text: fateOf(packet), packet })),
  };
}

function policyCaption({ title }: Box, packets: readonly PacketExplanation[]): Caption {
  const affinity = packets
    .flatMap((packet) => factsOf(packet, false))
    .find(({ label }) => label === 'affinity');
  const policy = packets.find(({ frontend }) => frontend)?.frontend?.policy;
  return { title: policy ?? title, lines: [...(affinity ? [affinity] : []), ...ways(packets)] };
}

function ways(packets: readonly PacketExplanation[]): readonly CaptionLine[] {
  return packets.map((packet) => {
    const same = packets.filter((other) => frontendWords(other) === frontendWords(packet));
    const label = `${sourceWords(packet, same)} → ${frontendWords(packet)}`;
    return { label, text: fateOf(packet), packet };
  });
}

/** What stops it, what cures it, and where it would go. */
function endCaption(packets: readonly PacketExplanation[]): Caption {
  const [first] = packets;
  const stops = new Map<string, Finding>();
  for (const { findings } of packets)
    for (const finding of findings) if (finding.severity === 'error') stops.set(finding.text, finding);
  const allowed = packets.map(ifAllowedFact).find((fact) => fact);
  return {
    title: first ? fateOf(first) : '',
    lines: [
      ...[...stops.values()].flatMap(({ text, cure }): readonly CaptionLine[] => [
        { label: '✗', text },
        ...(cure === undefined ? [] : [{ label: 'cure', text: cure }]),
      ]),
      ...(stops.size === 0 && first ? [{ label: '✗', text: first.reason }] : []),
      ...(allowed ? [allowed] : []),
      ...ways(packets),
    ],
  };
}

function endpointCaption(box: Box, packets: readonly PacketExplanation[]): Caption {
  const rows = box.rows ?? [];
  const [only] = rows;
  if (rows.length === 1 && only)
    return {
      title: only.address,
      aside: placeWords(only),
      lines: [{ label: 'state', text: endpointWords(only) }, ...chances(only, packets)],
    };
  return {
    title: box.title,
    aside: box.lines.join(', '),
    lines: [
      ...rows
        .slice(0, MOST_NAMED)
        .map((row) => ({ label: row.address, text: `${placeWords(row)}: ${endpointWords(row)}` })),
      ...(rows.length > MOST_NAMED
        ? [{ label: '', text: `and ${countOf(rows.length - MOST_NAMED, 'more endpoint')}` }]
        : []),
    ],
  };
}

/** How likely each packet comes to it, and with whose address. */
function chances(row: EndpointRow, packets: readonly PacketExplanation[]): readonly CaptionLine[] {
  return packets.flatMap((packet): readonly CaptionLine[] => {
    const chosen = packet.endpoints.find(({ address }) => address === row.address);
    if (!chosen) return [];
    const label = `${packet.source.class} → ${frontendWords(packet)}`;
    return [{ label, text: `${percent(chosen.probability)}, ${masqueradeWords(chosen)}`, packet }];
  });
}
