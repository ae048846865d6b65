/** Where a packet goes: a question, its answer, and its way through the hooks. */
import './packet.css';
import './packetWalk.css';
import { useEffect } from 'preact/hooks';
import { headlineOf, titleOf } from '../../../src/explain/packetText.ts';
import { printPacket } from '../../../src/explain/print.ts';
import type { PacketExplanation } from '../../../src/explain/types.ts';
import type { ApiFailure } from '../api.ts';
import { live } from '../live.ts';
import { CopyButton } from '../parts/copyButton.tsx';
import { Shown } from '../parts/states.tsx';
import { go } from '../route.ts';
import { type Answer, useAnswer } from '../useAnswer.ts';
import { PacketAnswer } from './packetAnswer.tsx';
import { type FieldFailure, PacketForm } from './packetForm.tsx';
import { commandOf, explainPath, isAsked, type PacketQuestion, questionOf } from './packetQuestion.ts';
import { PacketStart } from './packetStart.tsx';
import { isPacketTouched } from './packetTouch.ts';
import { PacketWalk } from './packetWalk.tsx';

/** Between two readings of the counters, while somebody looks. */
const LEAST_PAUSE_MS = 10_000;
/** A reading may take this part of the time between two of them. */
const SHARE = 0.01;

export function PacketView({ query }: { readonly query: URLSearchParams }) {
  const question = questionOf(query);
  const asked = isAsked(question);
  const answer: Answer<readonly PacketExplanation[]> = useAnswer(
    asked ? explainPath(question) : undefined,
    (event) => isPacketTouched(event, question.to, answer.kind === 'here' ? answer.value : []),
  );
  const hasKernel = answer.kind === 'here' && answer.value.some(({ kernel }) => kernel);
  // A recording is as it was, however often it is read.
  const again = hasKernel && live.state.kind !== 'fixed' ? answer.again : undefined;
  useInterval(again, pauseAfter(answer));
  const failed = asked ? failureAtField(answer) : undefined;
  return (
    <>
      <h1>Where does a packet go?</h1>
      <PacketForm question={question} failed={failed} />
      {(!asked || failed) && <PacketStart />}
      {asked && !failed && (
        <Shown what="the answer" answer={answer}>
          {(answers) => (
            <Answers
              answers={answers}
              at={answer.kind === 'here' ? answer.at : 0}
              question={question}
              query={query}
              onReadAgain={again}
            />
          )}
        </Shown>
      )}
    </>
  );
}

/** A question that cannot be answered; others say that nothing answers. */
function failureAtField(answer: Answer<unknown>): FieldFailure | undefined {
  const failure: ApiFailure | undefined = answer.kind === 'loading' ? undefined : answer.failure;
  const field = failure?.parameter;
  if (!failure || (field !== 'from' && field !== 'to')) return undefined;
  return { field, failure };
}

/** In steps, so that a reading that takes a little longer changes nothing. */
function pauseAfter(answer: Answer<readonly PacketExplanation[]>): number {
  const readings = answer.kind === 'here' ? answer.value.map(({ kernel }) => kernel?.readMs ?? 0) : [];
  const took = readings.reduce((sum, ms) => sum + ms, 0);
  return LEAST_PAUSE_MS * Math.max(1, Math.ceil(took / SHARE / LEAST_PAUSE_MS));
}

/** Nothing while the tab is hidden. */
function useInterval(run: (() => void) | undefined, ms: number): void {
  useEffect(() => {
    if (!run) return;
    const timer = setInterval(() => {
      if (!document.hidden) run();
    }, ms);
    return () => clearInterval(timer);
  }, [run, ms]);
}

interface AnswersProps {
  readonly answers: readonly PacketExplanation[];
  readonly at: number;
  readonly question: PacketQuestion;
  readonly query: URLSearchParams;
  readonly onReadAgain: (() => void) | undefined;
}

/** A name may stand for several addresses and ports: one packet at a time is shown. */
function Answers({ answers, at, question, query, onReadAgain }: AnswersProps) {
  const chosen = answers[Number(query.get('packet') ?? 0)] ?? answers[0];
  const index = chosen ? answers.indexOf(chosen) : 0;
  const set = (name: string, value: string): void => {
    const next = new URLSearchParams(query);
    next.set(name, value);
    if (name === 'packet') next.delete('way');
    go(`/packet?${next}`, 'replace');
  };
  if (!chosen) return null;
  return (
    <>
      <Tools answers={answers} at={at} question={question} query={query} />
      {answers.length > 1 && (
        <ul class="packets" aria-label="Packets">
          {answers.map((each, position) => (
            <li key={titleOf(each)}>
              <button
                type="button"
                aria-pressed={position === index}
                onClick={() => set('packet', String(position))}
              >
                <span class={`badge verdict-badge-${headlineOf(each).colour}`}>{headlineOf(each).text}</span>{' '}
                <span class="mono">{titleOf(each)}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <PacketAnswer answer={chosen} />
      <PacketWalk
        answer={chosen}
        at={at}
        wayKey={query.get('way') ?? undefined}
        onWay={(key) => set('way', key)}
        onReadAgain={onReadAgain}
      />
    </>
  );
}

/** As wide as a page of a mail. */
const COLUMNS = 100;
const plain = (_: string, text: string): string => text;

function Tools({ answers, at, question, query }: Omit<AnswersProps, 'onReadAgain'>) {
  const text = answers
    .map((answer) => printPacket(answer, { paint: plain, columns: COLUMNS, now: at }))
    .join('\n');
  const command = commandOf(question);
  return (
    <div class="packet-tools">
      <code>{command}</code>
      <CopyButton text={command} label="Copy command" name="Copy command" />
      <CopyButton text={text} label="Copy text" name="Copy text" />
      <CopyButton text={`${location.origin}/packet?${query}`} label="Copy link" name="Copy link" />
    </div>
  );
}
