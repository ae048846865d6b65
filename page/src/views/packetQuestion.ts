/** The question about a packet: as the form has it, as the address has it, as the API and the command line take it. */
import { apiPath, packetPath } from '../address.ts';

export interface PacketQuestion {
  readonly from: string;
  readonly to: string;
  /** `TCP`; empty: as the destination says. */
  readonly protocol: string;
}

export type QuestionField = keyof PacketQuestion;

export const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;

export function questionOf(query: URLSearchParams): PacketQuestion {
  const field = (name: QuestionField): string => (query.get(name) ?? '').trim();
  return settled({ from: field('from'), to: field('to'), protocol: field('protocol') });
}

/** A protocol that stands behind the destination is the protocol. */
export function settled(question: PacketQuestion): PacketQuestion {
  const [, to, behind] =
    /^((?:svc|services?)\/[^/]+\/[^/]+|.*:[^/]+)\/(tcp|udp|sctp)$/i.exec(question.to) ?? [];
  const protocol = PROTOCOLS.find((each) => each === (behind ?? question.protocol).toUpperCase()) ?? '';
  return { ...question, to: to ?? question.to, protocol };
}

/** Both ends are named. */
export function isAsked({ from, to }: PacketQuestion): boolean {
  return from !== '' && to !== '';
}

function destinationOf({ to, protocol }: PacketQuestion): string {
  return protocol === '' ? to : `${to}/${protocol.toLowerCase()}`;
}

export function explainPath(question: PacketQuestion): string {
  return apiPath(['explain'], { from: question.from, to: destinationOf(question) });
}

export function addressOf(question: PacketQuestion): string {
  return packetPath(Object.fromEntries(Object.entries(question).filter(([, value]) => value !== '')));
}

/** `junction explain --from outside --to 203.0.113.10:80` */
export function commandOf(question: PacketQuestion): string {
  return `junction explain --from ${shellWord(question.from)} --to ${shellWord(destinationOf(question))}`;
}

/** Whatever is in it, a shell takes it for one word. */
function shellWord(text: string): string {
  return /^[\w./:@%-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
