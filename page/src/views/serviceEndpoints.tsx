/** All endpoints, with what they get; numbers stand where something counts them. */
import { useState } from 'preact/hooks';
import { countOf, group } from '../../../src/explain/finding.ts';
import { endpointState, usedFor } from '../../../src/explain/serviceWords.ts';
import type { EndpointRow } from '../../../src/explain/types.ts';
import type { Box } from '../diagram/graph.ts';

interface EndpointColumn {
  readonly title: string;
  readonly cell: (row: EndpointRow) => string;
  readonly kind?: 'number' | 'mono' | 'prose';
  /** Shown where a row has something in it. */
  readonly isOptional?: true;
}

const COLUMNS: readonly EndpointColumn[] = [
  { title: 'Endpoint', cell: ({ address }) => address, kind: 'mono' },
  { title: 'Pod', cell: ({ pod = '' }) => pod, isOptional: true },
  { title: 'Node', cell: ({ node = '', isLocal }) => (isLocal ? `${node} (this one)` : node) },
  { title: 'Zone', cell: ({ zone = '' }) => zone, isOptional: true },
  { title: 'State', cell: endpointState },
  {
    title: 'Hints',
    cell: ({ zoneHints, nodeHints }) => [...zoneHints, ...nodeHints].join(', '),
    isOptional: true,
  },
  { title: 'Used for', cell: usedFor, kind: 'prose' },
  { title: 'Connections', cell: ({ connections }) => counted(connections), kind: 'number', isOptional: true },
];

function counted(count: number | undefined): string {
  return count === undefined ? '' : group(count);
}

/** More are shown on request: a table of thousands takes the browser long. */
const STEP = 100;
/** At first, so that what is below is not far. */
const FEW = 25;

interface EndpointsProps {
  readonly rows: readonly EndpointRow[];
  readonly pointed: Box | undefined;
}

export function ServiceEndpoints({ rows, pointed }: EndpointsProps) {
  const [most, setMost] = useState(FEW);
  const columns = COLUMNS.filter(
    ({ cell, isOptional }) => !isOptional || rows.some((row) => cell(row) !== ''),
  );
  const met = new Set(pointed?.rows?.map(({ address }) => address));
  return (
    <section class="card endpoints" aria-labelledby="endpoints-title">
      <h2 id="endpoints-title">{rows.length === 0 ? 'No endpoints' : countOf(rows.length, 'endpoint')}</h2>
      {rows.length > 0 && (
        <div class="scroll" role="region" aria-label="Table of endpoints" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {columns.map(({ title, kind }) => (
                  <th key={title} scope="col" class={kind === 'number' ? kind : undefined}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, most).map((row) => (
                <tr
                  key={`${row.address} ${row.pod ?? ''}`}
                  class={`${row.pools.length === 0 ? 'is-unused' : ''} ${met.has(row.address) ? 'is-met' : ''}`}
                >
                  {columns.map(({ title, cell, kind }) => (
                    <td key={title} class={kind}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rows.length > most && (
        <button type="button" onClick={() => setMost(most + STEP)}>
          Show {group(Math.min(STEP, rows.length - most))} more of {group(rows.length - most)}
        </button>
      )}
    </section>
  );
}
