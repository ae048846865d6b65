/** `junction explain`: where a packet goes and why; or all of it for a Service. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { printPacket } from '../explain/print.ts';
import { printService } from '../explain/printService.ts';
import { parseService } from '../explain/question.ts';
import type { PrintStyle } from '../explain/sheet.ts';
import type { PacketExplanation, ServiceExplanation, Verdict } from '../explain/types.ts';
import { type Shown, showAnswer, type Viewer } from './answerOutput.ts';
import { type Answerer, openAnswers } from './answers.ts';
import { UsageError } from './commands.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { peerName, serviceName } from './objectNames.ts';
import type { Output } from './output.ts';

export async function explainCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const question = questionOf(parsed);
  const answers = await openAnswers(parsed, output);
  return showAnswer(parsed, output, () => explained(answers, question));
}

type Question =
  | { readonly kind: 'packet'; readonly from: string; readonly to: string }
  | { readonly kind: 'service'; readonly service: string };

const SEE = 'junction explain --help has examples';

/** Two forms: a packet, or a Service. */
function questionOf(parsed: ParsedFlags): Question {
  const [name] = parsed.arguments;
  const namespace = flagValue(parsed, OWN_FLAGS.namespace);
  const [from, to] = [flagValue(parsed, OWN_FLAGS.from), flagValue(parsed, OWN_FLAGS.to)];
  if (name !== undefined) {
    if (from === '' && to === '') {
      const service = serviceName(name, namespace);
      // What cannot be read is refused here: it would be another path of the API.
      parseService(service);
      return { kind: 'service', service };
    }
    throw new UsageError([`either a Service, ${name}, or a packet, with --from and --to`], SEE);
  }
  if (from === '' && to === '')
    throw new UsageError(['what to explain? NAMESPACE/NAME, or a packet with --from and --to'], SEE);
  if (from === '') throw new UsageError(['who sends the packet? --from is missing'], SEE);
  if (to === '') throw new UsageError(['whom does it dial? --to is missing'], SEE);
  return { kind: 'packet', from: peerName(from, namespace), to: peerName(to, namespace) };
}

async function explained(answers: Answerer, question: Question): Promise<Shown> {
  if (question.kind === 'service') {
    const answer = await answers.service(question.service);
    return {
      answer,
      text: (viewer) => [printService(answer, styleOf(viewer))],
      exitCode: serviceCode(answer),
    };
  }
  const answer = await answers.packets(question);
  return {
    answer,
    text: (viewer) => separated(answer.map((each) => printPacket(each, styleOf(viewer)))),
    exitCode: packetsCode(answer),
  };
}

function styleOf(viewer: Viewer): PrintStyle {
  return { ...viewer, now: Date.now() };
}

/** With an empty line between them. */
function separated(texts: readonly string[]): readonly string[] {
  return texts.map((text, index) => (index === 0 ? text : `\n${text}`));
}

const CODES: Readonly<Record<Verdict, number>> = { forwarded: 0, rejected: 3, dropped: 4, passed: 6 };
const DIFFERS = 5;
/** Worst first. */
const ORDER = [DIFFERS, CODES.dropped, CODES.rejected, CODES.passed, CODES.forwarded];

/** Of several packets, the worst. */
function packetsCode(packets: readonly PacketExplanation[]): number {
  const codes = new Set(packets.map(packetCode));
  return ORDER.find((code) => codes.has(code)) ?? CODES.passed;
}

function packetCode({ verdict, kernel }: PacketExplanation): number {
  return kernel?.asPlanned === false ? DIFFERS : CODES[verdict];
}

/** A Local policy drops some packets as it should: what counts is whether anybody is served. */
function serviceCode({ ports }: ServiceExplanation): number {
  const codes = new Set(ports.flatMap(({ packets }) => packets.map(packetCode)));
  if (codes.has(DIFFERS)) return DIFFERS;
  if (codes.size === 0) return CODES.passed;
  return codes.has(CODES.forwarded)
    ? CODES.forwarded
    : (ORDER.find((code) => codes.has(code)) ?? CODES.passed);
}
