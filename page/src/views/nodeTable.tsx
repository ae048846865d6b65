/** All nodes of a cluster, worst first. */
import { useState } from 'preact/hooks';
import type { NodeState, NodeStatus } from '../../../src/explain/nodes.ts';
import { counted, grouped } from '../../../src/text/ages.ts';
import { nodePath } from './nodeStatus.ts';

/** The worst come first; a cluster may have thousands. */
const MOST_ROWS = 100;

export function NodeTable({
  nodes,
  chosen,
}: {
  readonly nodes: readonly NodeStatus[];
  readonly chosen: string | undefined;
}) {
  const [most, setMost] = useState(MOST_ROWS);
  const shown = nodes.slice(0, most);
  return (
    <section class="card" aria-labelledby="nodes-title">
      <h2 id="nodes-title">Nodes, worst first</h2>
      <div class="scroll">
        <table class="node-table">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">State</th>
              <th scope="col">Detail</th>
              <th scope="col">Mode</th>
              <th scope="col" class="number">
                Services
              </th>
              <th scope="col" class="number">
                Endpoints
              </th>
              <th scope="col">Version</th>
              <th scope="col">Zone</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((each) => (
              <Row key={each.node} each={each} isChosen={each.node === chosen} />
            ))}
          </tbody>
        </table>
      </div>
      {shown.length < nodes.length && (
        <button type="button" onClick={() => setMost(nodes.length)}>
          All {counted(nodes.length, 'node')}
        </button>
      )}
    </section>
  );
}

function Row({ each, isChosen }: { readonly each: NodeStatus; readonly isChosen: boolean }) {
  const { node, state, detail, status, object } = each;
  const families = status?.families ?? [];
  return (
    <tr class={isChosen ? 'node-chosen' : ''}>
      <th scope="row">
        <a href={nodePath(node)} {...(isChosen && { 'aria-current': 'true' as const })}>
          {node}
        </a>
      </th>
      <td>
        <NodeBadge state={state} />
      </td>
      <td class="node-detail">{detail ?? object?.reason ?? ''}</td>
      <td>{status?.mode ?? '–'}</td>
      <td class="number">{status ? families.map(({ services }) => grouped(services)).join(' / ') : '–'}</td>
      <td class="number">{status ? families.map(({ endpoints }) => grouped(endpoints)).join(' / ') : '–'}</td>
      <td>{status?.version ?? '–'}</td>
      <td>{object?.zone ?? '–'}</td>
    </tr>
  );
}

const TONES: Readonly<Record<NodeState, 'ok' | 'warning' | 'error'>> = {
  'no answer': 'error',
  'no pod': 'error',
  'not running': 'error',
  'not ready': 'error',
  errors: 'error',
  starting: 'warning',
  warnings: 'warning',
  'not asked': 'warning',
  ok: 'ok',
};

export function NodeBadge({ state }: { readonly state: NodeState }) {
  return <span class={`node-state node-state-${TONES[state]}`}>{state}</span>;
}
