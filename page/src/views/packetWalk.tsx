/** The packet's way, hook by hook: what is planned there, beside what the rules in the kernel do. */
import { useId } from 'preact/hooks';
import {
  BY_AFFINITY,
  kernelTitle,
  NO_RULE,
  outcomeTitle,
  foundWords,
  printMs,
} from '../../../src/explain/kernelText.ts';
import { group } from '../../../src/explain/finding.ts';
import { FOREIGN_RULE } from '../../../src/explain/words.ts';
import type { KernelExplanation, KernelStep, PacketExplanation } from '../../../src/explain/types.ts';
import { useNow } from '../parts/time.tsx';
import { PacketMap } from './packetMap.tsx';
import { type Station, stationsOf } from './packetStations.ts';
import { chosenWay, type PacketWay, waysOf } from './packetWays.ts';

interface WalkProps {
  readonly answer: PacketExplanation;
  /** When the answer came, by this browser's clock. */
  readonly at: number;
  /** Of the address. */
  readonly wayKey: string | undefined;
  readonly onWay: (key: string) => void;
  readonly onReadAgain: (() => void) | undefined;
}

export function PacketWalk({ answer, at, wayKey, onWay, onReadAgain }: WalkProps) {
  const ways = waysOf(answer);
  const way = chosenWay(ways, wayKey);
  const { kernel } = answer;
  if (!way) return null;
  const stations = stationsOf(answer, way);
  return (
    <section class="card packet-walk" aria-labelledby="walk-title">
      <div class="walk-head">
        <h2 id="walk-title">Its way</h2>
        {kernel && <Reading kernel={kernel} at={at} />}
        {kernel && onReadAgain && (
          <button type="button" onClick={onReadAgain}>
            Read again
          </button>
        )}
        {!kernel && <span class="quiet">No kernel was asked: this is what is planned.</span>}
      </div>
      {kernel && <Differences kernel={kernel} />}
      <WayChoice ways={ways} chosen={way} onWay={onWay} />
      {way.outcome && <p class="way-title">{outcomeTitle(way.outcome)}</p>}
      <PacketMap answer={answer} stations={stations} />
      <div class={kernel ? 'stations' : 'stations stations-planned'} role="table" aria-label="Stations">
        <div class="station station-titles" role="row">
          <span role="columnheader">hook</span>
          <span role="columnheader">planned</span>
          {kernel && <span role="columnheader">in the kernel</span>}
        </div>
        {stations.map((station) => (
          <StationRow
            key={station.id}
            station={station}
            way={way}
            isAsked={kernel?.asPlanned !== undefined}
          />
        ))}
      </div>
      {kernel && <Notes notes={kernel.notes} />}
    </section>
  );
}

/** Its age by this browser's clock, which need not be the node's; what was read long ago has the node's. */
function Reading({ kernel, at }: { readonly kernel: KernelExplanation; readonly at: number }) {
  const now = useNow();
  const isFresh = Math.abs(at - kernel.readAt) < CLOCKS_APART_MS;
  const age = isFresh ? kernel.readAt + Math.max(0, now - at) : now;
  return (
    <span
      class={kernel.asPlanned === false ? 'reading reading-bad' : 'reading'}
      title={`read in ${printMs(kernel.readMs)}`}
    >
      {kernelTitle(kernel, age)}
    </span>
  );
}

const CLOCKS_APART_MS = 300_000;

function Differences({ kernel }: { readonly kernel: KernelExplanation }) {
  if (kernel.differences.length === 0) return null;
  return (
    <ul class="walk-differences" aria-label="Differences">
      {kernel.differences.map((difference) => (
        <li key={difference}>
          <span aria-hidden="true">✗</span> {difference}
        </li>
      ))}
    </ul>
  );
}

function Notes({ notes }: { readonly notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes" aria-label="Notes">
      {notes.map((note) => (
        <li key={note}>
          <span class="quiet">note</span> {note}
        </li>
      ))}
    </ul>
  );
}

/** As buttons, where so many can be seen at one time. */
const MOST_BUTTONS = 8;

function WayChoice({
  ways,
  chosen,
  onWay,
}: {
  readonly ways: readonly PacketWay[];
  readonly chosen: PacketWay;
  readonly onWay: (key: string) => void;
}) {
  const name = useId();
  if (ways.length < 2) return null;
  if (ways.length > MOST_BUTTONS)
    return (
      <label class="way-choice">
        <span>Way </span>
        <select value={chosen.key} onChange={(event) => onWay(event.currentTarget.value)}>
          {ways.map((way) => (
            <option key={way.key} value={way.key}>
              {`${isWrong(way) ? '✗ ' : ''}${way.share} ${way.end} ${way.place}`.trim()}
            </option>
          ))}
        </select>
      </label>
    );
  return (
    <fieldset class="way-choice">
      <legend class="visually-hidden">Way</legend>
      {ways.map((way) => (
        <label key={way.key} class={isWrong(way) ? 'walk-way walk-way-wrong' : 'walk-way'}>
          <input
            type="radio"
            name={name}
            value={way.key}
            checked={way.key === chosen.key}
            onChange={() => onWay(way.key)}
          />
          <span>
            {isWrong(way) && <span aria-label="not as planned">✗ </span>}
            <b>{way.share}</b> <span class="mono">{way.end}</span>
            {way.place !== '' && <span class="quiet"> {way.place}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function isWrong({ differences }: PacketWay): boolean {
  return differences.length > 0;
}

function StationRow({
  station,
  way,
  isAsked,
}: {
  readonly station: Station;
  readonly way: PacketWay;
  readonly isAsked: boolean;
}) {
  const { point, planned, stages, differences, isEnd } = station;
  const state = differences.length > 0 ? ' station-wrong' : isEnd ? ' station-end' : '';
  return (
    <div class={`station${state}`} role="row">
      <div class="station-name" role="rowheader">
        <span class="station-dot" aria-hidden="true" />
        {point === 'ipvs' ? 'IPVS' : point}
      </div>
      <div class="station-planned" role="cell">
        <span class="station-label" aria-hidden="true">
          planned
        </span>
        {planned.length === 0 ? <Nothing /> : planned.map((line) => <p key={line}>{line}</p>)}
      </div>
      {isAsked && (
        <div class="station-kernel" role="cell">
          <span class="station-label" aria-hidden="true">
            in the kernel
          </span>
          {differences.map(({ expected, found }) => (
            <p key={`${expected} ${found}`} class="station-difference">
              <span aria-hidden="true">✗</span> planned: {expected}; kernel: {found}
            </p>
          ))}
          {way.outcome?.byAffinity === true && isChoice(stages) && <p>{BY_AFFINITY}</p>}
          {stages.length === 0 &&
            differences.length === 0 &&
            (way.outcome ? <p class="quiet">{NO_RULE}</p> : <Nothing />)}
          {stages.map((steps, index) => (
            <Stage key={`${index} ${steps[0]?.hook}`} steps={steps} />
          ))}
        </div>
      )}
    </div>
  );
}

/** The rule that sends the packet to its endpoint is among them. */
function isChoice(stages: Station['stages']): boolean {
  return stages.some((steps) => steps.some(({ rule, table }) => /dnat/i.test(rule) || table === 'ipvs'));
}

function Nothing() {
  return (
    <p class="quiet">
      <span aria-hidden="true">–</span>
      <span class="visually-hidden">nothing</span>
    </p>
  );
}

function Stage({ steps }: { readonly steps: readonly KernelStep[] }) {
  const [first] = steps;
  if (!first) return null;
  return (
    <div class="stage">
      <h3>
        {first.hook}
        {!first.hook.startsWith(first.table) && <span class="quiet"> {first.table}</span>}
      </h3>
      <ol>
        {steps.map((step, index) => (
          <li
            key={`${index} ${step.chain} ${step.rule}`}
            class={step.isForeign === true ? 'step step-foreign' : 'step'}
          >
            <span class="step-chain">{step.chain}</span>
            <span class="step-rule">
              {step.rule}
              {step.found.length > 0 && <span class="step-found"> {foundWords(step)}</span>}
              {step.isForeign === true && <span class="step-mark"> {FOREIGN_RULE}</span>}
            </span>
            {step.packets !== undefined && <Packets count={step.packets} />}
          </li>
        ))}
      </ol>
    </div>
  );
}

function Packets({ count }: { readonly count: number }) {
  return (
    <span class="step-packets">
      {group(count)} <span class="quiet">{count === 1 ? 'packet' : 'packets'}</span>
    </span>
  );
}
