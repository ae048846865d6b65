/** The parts of a status, each on a card of its own. */
import type { FamilyStatus, SourceStatus, Status } from '../../../src/explain/status.ts';
import type { StatusPart } from '../../../src/explain/statusText.ts';
import { serviceOfPortId } from '../../../src/model/serviceTracker.ts';
import { durationText, grouped } from '../../../src/text/ages.ts';
import { CopyButton } from '../parts/copyButton.tsx';
import { ServiceWords } from '../parts/serviceWords.tsx';
import { fullnessOf, problemParts, type StatusGroup, stageShares, statusGroups } from './nodeStatus.ts';

export function StatusCards({ status }: { readonly status: Status }) {
  const { beside, families } = statusGroups(status);
  const cardOf = (group: StatusGroup) => (
    <section key={group.name} class="card" aria-label={group.name}>
      <h2>{group.name}</h2>
      <Content group={group} status={status} />
    </section>
  );
  return (
    <div class="node-cards">
      <div class="node-beside">{beside.map(cardOf)}</div>
      <div class="node-families">{families.map(cardOf)}</div>
    </div>
  );
}

function Content({ group, status }: { readonly group: StatusGroup; readonly status: Status }) {
  const family = status.families.find((each) => each.family === group.name);
  const [first] = group.parts;
  if (family) return <Family parts={group.parts} family={family} />;
  if (group.name === 'conntrack' && status.conntrack && first)
    return <Conntrack conntrack={status.conntrack} part={first} />;
  if (first && group.name === sourceName(status.source)) return <Source part={first} />;
  return <Lines part={first} />;
}

function sourceName({ kind }: SourceStatus): string {
  return kind === 'manifests' ? 'manifests' : 'API server';
}

/** Lines with the exact time on hover. */
function Lines({ part }: { readonly part: StatusPart | undefined }) {
  if (!part) return null;
  const exact = part.at === undefined ? undefined : new Date(part.at).toLocaleString();
  return (
    <>
      {part.lines.map((line, index) => (
        <p key={line} class="status-line" {...(index === 0 && exact !== undefined && { title: exact })}>
          {line}
        </p>
      ))}
    </>
  );
}

/** Behind its first line stands what is wrong. */
function Source({ part }: { readonly part: StatusPart }) {
  const [, ...problems] = part.lines;
  return (
    <>
      <Lines part={{ ...part, lines: part.lines.slice(0, 1) }} />
      {problems.length > 0 && (
        <ul class="manifest-problems" aria-label="Problems">
          {problems.map((problem) => {
            const { where, text } = problemParts(problem);
            return (
              <li key={problem}>
                {where !== undefined && (
                  <>
                    <code>{where}</code> <CopyButton text={where} />{' '}
                  </>
                )}
                {text}
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}

function Family({ parts, family }: { readonly parts: readonly StatusPart[]; readonly family: FamilyStatus }) {
  const [size, ...rest] = parts;
  return (
    <>
      <Lines part={size} />
      <dl class="status-parts">
        {rest.map((part) => (
          <div key={part.name} class={`status-part status-${part.name.replaceAll(' ', '-')}`}>
            <dt>{part.name}</dt>
            <dd>
              {part.name === 'refused' ? <Refused family={family} /> : <Lines part={part} />}
              {part.name === 'last sync' && <Stages family={family} />}
            </dd>
          </div>
        ))}
        <SyncCounts family={family} />
      </dl>
    </>
  );
}

function Refused({ family }: { readonly family: FamilyStatus }) {
  return (
    <>
      {family.refused.map(({ servicePort, error }) => (
        <p key={servicePort} class="status-line">
          <ServiceWords text={`${servicePort}: ${error}`} service={serviceOfPortId(servicePort)} />
        </p>
      ))}
    </>
  );
}

/** The sentence above says the same in numbers. */
function Stages({ family }: { readonly family: FamilyStatus }) {
  const shares = stageShares(family);
  if (!shares) return null;
  const { planMs = 0, writeMs = 0 } = family.lastSync ?? {};
  return (
    <div class="stage-bar" aria-hidden="true">
      <span
        class="stage-bar-plan"
        style={{ flexGrow: String(shares.plan) }}
        title={`plan ${durationText(planMs)}`}
      />
      <span
        class="stage-bar-write"
        style={{ flexGrow: String(shares.write) }}
        title={`write ${durationText(writeMs)}`}
      />
    </div>
  );
}

const COUNTS = ['full', 'incremental', 'nothing', 'failed'] as const;

function SyncCounts({ family: { syncs } }: { readonly family: FamilyStatus }) {
  const counts = COUNTS.filter((kind) => syncs[kind] > 0);
  if (counts.length === 0) return null;
  return (
    <div class="status-part">
      <dt>syncs</dt>
      <dd>{counts.map((kind) => `${grouped(syncs[kind])} ${kind}`).join(', ')}</dd>
    </div>
  );
}

function Conntrack({
  conntrack,
  part,
}: {
  readonly conntrack: NonNullable<Status['conntrack']>;
  readonly part: StatusPart;
}) {
  const { share, state } = fullnessOf(conntrack);
  return (
    <>
      <div
        class="fullness"
        role="meter"
        aria-label="conntrack"
        aria-valuemin={0}
        aria-valuemax={conntrack.max}
        aria-valuenow={conntrack.count}
        aria-valuetext={part.lines[0] ?? ''}
      >
        <span class={`fullness-bar fullness-${state}`} style={{ width: `${100 * share}%` }} />
      </div>
      <Lines part={part} />
    </>
  );
}
