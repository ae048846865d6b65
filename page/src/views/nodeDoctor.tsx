/** What `doctor` finds, on request: it looks at the whole machine. */
import type { DoctorGroup, DoctorReport } from '../../../src/explain/doctorReport.ts';
import { doctorSummary, fineSummary } from '../../../src/explain/doctorText.ts';
import { Findings } from '../parts/findings.tsx';
import { Failed } from '../parts/states.tsx';
import { Ago } from '../parts/time.tsx';
import { useAsked } from './nodeAsked.ts';

export function Doctor({ isRecorded }: { readonly isRecorded: boolean }) {
  const { answer, isAsking, ask } = useAsked<DoctorReport>('/v1/doctor');
  const failure = answer?.kind === 'failed' ? answer.failure : undefined;
  const report = answer?.kind === 'here' ? answer.value : undefined;
  return (
    <section class="card doctor" aria-labelledby="doctor-title" aria-busy={isAsking}>
      <div class="doctor-head">
        <h2 id="doctor-title">Doctor</h2>
        <span class="doctor-summary" role="status">
          {isAsking ? 'looking at this node…' : report ? doctorSummary(report) : ''}
        </span>
        {report && (
          <span class="quiet">
            <Ago at={report.at} />
          </span>
        )}
        {!isRecorded && failure?.status !== 404 && (
          <button type="button" disabled={isAsking} onClick={ask}>
            Run again
          </button>
        )}
      </div>
      {failure &&
        (failure.status === 404 ? (
          <p class="quiet">{failure.message}</p>
        ) : (
          <Failed what="what doctor finds" failure={failure} />
        ))}
      {report && <Groups groups={report.groups} />}
    </section>
  );
}

function Groups({ groups }: { readonly groups: readonly DoctorGroup[] }) {
  return (
    <>
      {groups
        .filter(({ findings }) => findings.length > 0)
        .map((group) => (
          <GroupWithFindings key={group.name} group={group} />
        ))}
      <ul class="doctor-fine-groups" aria-label="Without findings">
        {groups
          .filter(({ findings }) => findings.length === 0)
          .map((group) => (
            <li key={group.name}>
              <FineGroup group={group} />
            </li>
          ))}
      </ul>
    </>
  );
}

function GroupWithFindings({ group }: { readonly group: DoctorGroup }) {
  const { name, findings, fine } = group;
  return (
    <div class="doctor-group">
      <h3>
        {name} <span class={`node-state node-state-${findings[0]?.severity}`}>{findings[0]?.severity}</span>
      </h3>
      <Findings findings={findings} label={`Findings: ${name}`} />
      <NotEvaluated group={group} />
      {fine.length > 0 && (
        <details class="doctor-fine">
          <summary>
            <span class="node-state node-state-ok">ok</span> <span class="quiet">{fineSummary(fine)}</span>
          </summary>
          <FineLines fine={fine} />
        </details>
      )}
    </div>
  );
}

function FineGroup({ group }: { readonly group: DoctorGroup }) {
  const { name, fine } = group;
  // Of what was not looked at, nothing is fine.
  if (fine.length === 0)
    return (
      <div class="doctor-skipped">
        <span class="doctor-fine-name">{name}</span>
        <NotEvaluated group={group} />
      </div>
    );
  return (
    <>
      <details class="doctor-fine">
        <summary>
          <span class="doctor-fine-name">{name}</span> <span class="node-state node-state-ok">ok</span>{' '}
          <span class="quiet">{fineSummary(fine)}</span>
        </summary>
        <FineLines fine={fine} />
      </details>
      <NotEvaluated group={group} />
    </>
  );
}

function FineLines({ fine }: { readonly fine: readonly string[] }) {
  return (
    <ul class="doctor-fine-lines">
      {fine.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function NotEvaluated({ group: { notEvaluated } }: { readonly group: DoctorGroup }) {
  if (notEvaluated.length === 0) return null;
  return (
    <dl class="not-evaluated">
      <dt>not looked at</dt>
      {notEvaluated.map((text) => (
        <dd key={text}>{text}</dd>
      ))}
    </dl>
  );
}
