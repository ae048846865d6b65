/** What is wrong, what follows, and what cures it: in the words of `explain` and `doctor`. */
import type { Finding } from '../../../src/explain/types.ts';
import { CopyButton } from './copyButton.tsx';

const SIGNS = { error: '✗', warning: '!', info: 'i' } as const;

export function Findings({
  findings,
  label,
}: {
  readonly findings: readonly Finding[];
  readonly label: string;
}) {
  return (
    <ul class="findings" aria-label={label}>
      {findings.map((finding) => (
        <li key={`${finding.code} ${finding.text}`} class={`finding finding-${finding.severity}`}>
          <span class="sign" role="img" aria-label={finding.severity}>
            {SIGNS[finding.severity]}
          </span>
          <div>
            <p class="finding-text">{finding.text}</p>
            <dl>
              <Line name="evidence" value={finding.evidence} />
              <Line name="consequence" value={finding.consequence} />
              {finding.cure !== undefined && (
                <>
                  <dt>cure</dt>
                  <dd>
                    <code>{finding.cure}</code> <CopyButton text={finding.cure} />
                  </dd>
                </>
              )}
              <Line name="in" value={finding.reference?.where} />
            </dl>
          </div>
        </li>
      ))}
    </ul>
  );
}

function Line({ name, value }: { readonly name: string; readonly value: string | undefined }) {
  if (value === undefined) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
