/** How the node is: the running proxy, its source, each family, conntrack, and what `doctor` finds. */
import './node.css';
import type { ComponentChildren } from 'preact';
import type { NodeStatus } from '../../../src/explain/nodes.ts';
import type { Status } from '../../../src/explain/status.ts';
import { statusHeading } from '../../../src/explain/statusText.ts';
import { Findings } from '../parts/findings.tsx';
import { Empty, Shown } from '../parts/states.tsx';
import { useNow } from '../parts/time.tsx';
import { usePolled } from './nodeAsked.ts';
import { StatusCards } from './nodeCards.tsx';
import { Doctor } from './nodeDoctor.tsx';
import { agedStatus, isOfCluster } from './nodeStatus.ts';
import { NodeBadge, NodeTable } from './nodeTable.tsx';

const STATUS_MS = 5000;
const NODES_MS = 20_000;

export function NodeView({ query }: { readonly query: URLSearchParams }) {
  const answer = usePolled<Status>('/v1/status', STATUS_MS, true);
  const hasNodes = answer.kind === 'here' && isOfCluster(answer.value);
  const nodes = usePolled<readonly NodeStatus[]>(hasNodes ? '/v1/nodes' : undefined, NODES_MS, false);
  const chosen = query.get('node') ?? undefined;
  const all = nodes.kind === 'here' ? nodes.value : undefined;
  const other = chosen === undefined ? undefined : all?.find(({ node }) => node === chosen);
  const table = all && <NodeTable nodes={all} chosen={other?.node} />;
  if (other && nodes.kind === 'here')
    return (
      <OtherNode other={other} at={nodes.at}>
        {table}
      </OtherNode>
    );
  return (
    <Shown what="the node's status" answer={answer}>
      {(status) => (
        <>
          <NodeHealth status={status} at={answer.kind === 'here' ? answer.at : 0}>
            {table}
          </NodeHealth>
          <Doctor isRecorded={status.answeredBy?.kind === 'bundle'} />
        </>
      )}
    </Shown>
  );
}

/** `children`: below what is wrong, above its parts. */
function NodeHealth({
  status,
  at,
  children,
}: {
  readonly status: Status;
  readonly at: number;
  readonly children: ComponentChildren;
}) {
  const shown = agedStatus(status, useNow() - at);
  const { title, how, state, isWrong } = statusHeading(shown);
  return (
    <>
      <div class="node-head">
        <h1>{title}</h1>
        <span class={`node-state node-state-${isWrong ? 'error' : 'ok'}`}>{state}</span>
        <p class="quiet" title={`since ${new Date(status.startedAt).toLocaleString()}`}>
          {how}
        </p>
      </div>
      {status.findings.length > 0 && (
        <div class="node-findings">
          <Findings findings={status.findings} label="What is wrong" />
        </div>
      )}
      {children}
      <StatusCards status={shown} />
    </>
  );
}

/** Of which only its own proxy could say more. */
function OtherNode({
  other,
  at,
  children,
}: {
  readonly other: NodeStatus;
  readonly at: number;
  readonly children: ComponentChildren;
}) {
  const { node, state, detail, status } = other;
  if (status)
    return (
      <NodeHealth status={status} at={at}>
        {children}
      </NodeHealth>
    );
  return (
    <>
      <div class="node-head">
        <h1>{node}</h1>
        <NodeBadge state={state} />
      </div>
      <Empty title={detail ?? state} />
      {children}
    </>
  );
}
