/** All nodes of a cluster, worst first. */
import type { NodeState, NodeStatus } from '../../../src/explain/nodes.ts';
import { grouped } from '../../../src/text/ages.ts';
import { nodePath } from './nodeStatus.ts';

export function NodeTable({
  nodes,
  chosen,
}: {
  readonly nodes: readonly NodeStatus[];
  readonly chosen: string | undefined;
}) {
  return (
    <section class="card" aria-labelledby="nodes-title">
      <h2 id="nodes-title">Nodes, worst first</h2>
      <div class="scroll">
        <table class="node-table">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">State</th>
              <th scope="col">Mode</th>
              <th scope="col" class="number">
                Services
              </th>
              <th scope="col" class="number">
                Endpoints
              </th>
              <th scope="col">Version</th>
              <th scope="col">Zone</th>
              <th scope="col">Detail</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((each) => (
              <Row key={each.node} each={each} isChosen={each.node === chosen} />
            ))}
          </tbody>
        </table>
      </div>
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
      <td>{status?.mode ?? '–'}</td>
      <td class="number">{status ? families.map(({ services }) => grouped(services)).join(' / ') : '–'}</td>
      <td class="number">{status ? families.map(({ endpoints }) => grouped(endpoints)).join(' / ') : '–'}</td>
      <td>{status?.version ?? '–'}</td>
      <td>{object?.zone ?? '–'}</td>
      <td class="node-detail">{detail ?? object?.reason ?? ''}</td>
    </tr>
  );
}

const TONES: Readonly<Record<NodeState, 'ok' | 'warning' | 'error'>> = {
  'no answer': 'error',
  'no pod': 'error',
  'not running': 'error',
  'not ready': 'error',
  errors: 'error',
  warnings: 'warning',
  'not asked': 'warning',
  ok: 'ok',
};

export function NodeBadge({ state }: { readonly state: NodeState }) {
  return <span class={`node-state node-state-${TONES[state]}`}>{state}</span>;
}
