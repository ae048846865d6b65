/** What becomes of a packet, and why: the words of `explain`. */
import {
  deviationText,
  endpointTable,
  factsOf,
  headlineOf,
  ifAllowedFact,
  leftOutTable,
  titleOf,
} from '../../../src/explain/packetText.ts';
import type { PacketExplanation } from '../../../src/explain/types.ts';
import { Findings } from '../parts/findings.tsx';
import { servicePath } from '../route.ts';

export function PacketAnswer({ answer }: { readonly answer: PacketExplanation }) {
  const headline = headlineOf(answer);
  const deviation = deviationText(answer);
  const allowed = ifAllowedFact(answer);
  const { frontend, findings, reason } = answer;
  return (
    <section class={`card packet-answer verdict-${headline.colour}`} aria-labelledby="packet-title">
      <p class="verdict">{headline.text}</p>
      <h2 id="packet-title">{titleOf(answer)}</h2>
      <p class="packet-reason">{reason}</p>
      <dl class="facts">
        {factsOf(answer, true).map(({ label, text, aside }) => (
          <Fact key={label} label={label} text={text} aside={aside} />
        ))}
        {frontend && (
          <>
            <dt>service</dt>
            <dd>
              <a href={servicePath(frontend.service)}>{frontend.service}</a>
            </dd>
          </>
        )}
        {allowed && <Fact label={allowed.label} text={allowed.text} />}
      </dl>
      {deviation !== undefined && <p class="packet-deviation">! {deviation}</p>}
      {findings.length > 0 && <Findings findings={findings} label="Why" />}
      <div class="packet-endpoints">
        <EndpointTable
          title="endpoints"
          table={endpointTable(answer, true)}
          columns={['share', 'address', 'pod and node', 'masquerade']}
        />
        <EndpointTable
          title="left out"
          table={leftOutTable(answer, true)}
          columns={['address', 'pod and node', 'reason']}
        />
      </div>
    </section>
  );
}

function Fact({
  label,
  text,
  aside,
}: {
  readonly label: string;
  readonly text: string;
  readonly aside?: string | undefined;
}) {
  return (
    <>
      <dt>{label}</dt>
      <dd>
        {text}
        {aside !== undefined && <span class="quiet"> {aside}</span>}
      </dd>
    </>
  );
}

function EndpointTable({
  title,
  table,
  columns,
}: {
  readonly title: string;
  readonly table: ReturnType<typeof endpointTable>;
  readonly columns: readonly string[];
}) {
  if (!table) return null;
  const count = Math.max(...table.rows.map((row) => row.length));
  return (
    <div>
      <h3>
        {title} <span class="quiet">{table.text}</span>
      </h3>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table class={title === 'left out' ? 'left-out' : ''}>
          <thead>
            <tr>
              {columns.slice(0, count).map((column) => (
                <th key={column} scope="col" class={column === 'share' ? 'number' : ''}>
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row) => (
              <tr key={row.join(' ')}>
                {row.map((cell, index) => (
                  <td key={columns[index] ?? ''} class={cellClass(columns[index])}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.more !== undefined && <p class="quiet">{table.more}</p>}
    </div>
  );
}

function cellClass(column: string | undefined): string {
  return column === 'share' ? 'number' : column === 'address' ? 'mono' : '';
}
