/** What the answer about a packet says, piece by piece: `explain` prints the pieces, the page shows them. */
import { hostPort } from '../model/ip.ts';
import type { Colour } from '../text/paint.ts';
import { countOf, group, listed } from './finding.ts';
import { placeWords } from './serviceWords.ts';
import type { ChosenEndpoint, FrontendName, LeftOutEndpoint, PacketExplanation, Verdict } from './types.ts';
import { KIND_WORDS, percent } from './words.ts';

const VERDICT_WORDS: Readonly<Record<Verdict, string>> = {
  forwarded: 'FORWARDED',
  rejected: 'REJECTED',
  dropped: 'DROPPED',
  passed: 'NOT A SERVICE',
};
const VERDICT_COLOURS: Readonly<Record<Verdict, Colour>> = {
  forwarded: 'green',
  rejected: 'red',
  dropped: 'red',
  passed: 'yellow',
};

interface Headline {
  readonly text: string;
  readonly colour: Colour;
}

/** What really becomes of it stands first: the kernel decides, whatever was planned. */
export function headlineOf({ verdict, kernel }: PacketExplanation): Headline {
  const planned = VERDICT_WORDS[verdict];
  if (kernel?.asPlanned !== false) return { text: planned, colour: VERDICT_COLOURS[verdict] };
  const [one, ...others] = new Set(kernel.outcomes.map((outcome) => outcome.verdict));
  if (one === undefined || one === verdict || others.length > 0)
    return { text: `${planned}, BUT NOT AS PLANNED`, colour: 'red' };
  return { text: `${VERDICT_WORDS[one]}, PLANNED: ${planned}`, colour: 'red' };
}

/** `10.244.1.11 (shop/pod-a) → 10.96.0.40:80/TCP on node1` */
export function titleOf({ packet, node }: PacketExplanation): string {
  const { source, sourceName, destination, port, protocol } = packet;
  const name = sourceName === undefined ? '' : ` (${sourceName})`;
  return `${source}${name} → ${hostPort(destination, port)}/${protocol} on ${node}`;
}

interface Fact {
  readonly label: string;
  readonly text: string;
  readonly aside?: string;
}

/** The frontend, who asks, and what holds for both. `isWide`: with the interface. */
export function factsOf(
  { packet, source, frontend, affinitySeconds }: PacketExplanation,
  isWide: boolean,
): readonly Fact[] {
  const via = !isWide || packet.inInterface === undefined ? '' : `, in through ${packet.inInterface}`;
  return [
    ...(frontend ? [{ label: 'frontend', text: printFrontend(frontend), aside: frontend.policy }] : []),
    ...(frontend && frontend.others.length > 0
      ? [{ label: 'also at', text: listed(frontend.others, MOST_OTHERS) }]
      : []),
    { label: 'source', text: `${source.class} (${source.why})${via}` },
    ...(affinitySeconds === undefined
      ? []
      : [
          {
            label: 'affinity',
            text: `a client stays with its endpoint for ${group(affinitySeconds)} s`,
          },
        ]),
  ];
}

const MOST_OTHERS = 4;

export function printFrontend({ kind, port, servicePort }: FrontendName): string {
  const name = servicePort.slice(0, servicePort.lastIndexOf('/'));
  return kind === 'nodePort' ? `node port ${port} of ${name}` : `${KIND_WORDS[kind]} of ${name}`;
}

/** Where it is not the reason already. */
export function deviationText({ verdict, deviation, reason }: PacketExplanation): string | undefined {
  return verdict === 'passed' && deviation === reason ? undefined : deviation;
}

interface EndpointTable {
  /** `3 endpoints, client address kept: the source is in the pod network` */
  readonly text: string;
  readonly rows: readonly (readonly string[])[];
  /** `and 12 more` */
  readonly more?: string;
}

/** How many endpoints are listed where not all are. */
const MOST_SHOWN = 10;

/** `undefined`: there are none. Rows: share, address, place, and the masquerade where it is not the same for all. */
export function endpointTable(
  { endpoints, unlisted }: PacketExplanation,
  isWide: boolean,
): EndpointTable | undefined {
  if (endpoints.length === 0) return undefined;
  const shown = isWide ? endpoints : endpoints.slice(0, MOST_SHOWN);
  const masquerades = new Set(endpoints.map(masqueradeWords));
  const [common] = masquerades.size === 1 ? masquerades : [];
  const all = endpoints.length + (unlisted?.endpoints ?? 0);
  const count = countOf(all, 'endpoint');
  return {
    text: common === undefined ? count : `${count}, ${common}`,
    rows: shown.map((each) => [
      percent(each.probability),
      each.address,
      placeWords(each),
      ...(common === undefined ? [masqueradeWords(each)] : []),
    ]),
    ...moreThan(shown, all),
  };
}

/** Rows: address, place, reason. Where the source is not allowed, who is left out does not matter. */
export function leftOutTable(
  { leftOut, unlisted, findings }: PacketExplanation,
  isWide: boolean,
): EndpointTable | undefined {
  const isStopped = findings.some(({ code }) => code === 'source-not-allowed');
  if (leftOut.length === 0 || (isStopped && !isWide)) return undefined;
  const shown: readonly LeftOutEndpoint[] = isWide ? leftOut : leftOut.slice(0, MOST_SHOWN);
  const all = leftOut.length + (unlisted?.leftOut ?? 0);
  return {
    text: countOf(all, 'endpoint'),
    rows: shown.map((each) => [each.address, placeWords(each), each.text]),
    ...moreThan(shown, all),
  };
}

function moreThan(shown: readonly unknown[], all: number): Pick<EndpointTable, 'more'> {
  return all > shown.length ? { more: `and ${group(all - shown.length)} more` } : {};
}

export function masqueradeWords({ masquerade, masqueradeReason }: ChosenEndpoint): string {
  const what = masqueradeWord(masquerade);
  return masqueradeReason === '' ? what : `${what}: ${masqueradeReason}`;
}

function masqueradeWord(masquerade: boolean): string {
  return masquerade ? 'masqueraded' : 'client address kept';
}

/** Where it would go if what stops it were not there. */
export function ifAllowedFact({ ifAllowed }: PacketExplanation): Fact | undefined {
  const [first, ...others] = ifAllowed?.endpoints ?? [];
  if (!ifAllowed || !first) return undefined;
  const more = others.length > 0 ? `, or ${countOf(others.length, 'other endpoint')}` : '';
  return {
    label: ifAllowed.condition,
    text: `${first.address} (${placeWords(first)})${more}, ${masqueradeWord(first.masquerade)}`,
  };
}
