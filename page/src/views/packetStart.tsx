/** Before anything is asked: what one can ask, with questions about this cluster. */
import type { ServiceRow } from '../../../src/explain/types.ts';
import { apiPath, askJson } from '../api.ts';
import { useAnswer } from '../useAnswer.ts';
import { type Example, examplesOf } from './packetExamples.ts';
import { addressOf, commandOf } from './packetQuestion.ts';

/** How many services the examples are chosen from. */
const MOST_SERVICES = 40;

export function PacketStart() {
  const answer = useAnswer<readonly Example[]>(
    apiPath(['names'], { kind: 'services' }),
    undefined,
    readExamples,
  );
  return (
    <section class="card packet-start" aria-labelledby="start-title">
      <h2 id="start-title">What can be asked</h2>
      <p>
        A packet from an address, from a pod (<code>pod/NAMESPACE/NAME</code>), from this <code>node</code> or
        from <code>outside</code>, to an address and port or to a Service (
        <code>svc/NAMESPACE/NAME:PORT</code>). The answer says whether it is forwarded, and by which rules; no
        packet is sent.
      </p>
      {answer.kind === 'here' && answer.value.length > 0 && (
        <ul class="examples" aria-label="Examples">
          {answer.value.map(({ title, question }) => (
            <li key={title}>
              <a href={addressOf(question)}>{title}</a>
              <code class="quiet">{commandOf(question)}</code>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

async function readExamples(path: string, signal: AbortSignal): Promise<readonly Example[]> {
  const names = await askJson<readonly string[]>(path, signal);
  if (names.length === 0) return [];
  const search = new URLSearchParams(names.slice(0, MOST_SERVICES).map((name) => ['service', name]));
  const rows = await askJson<readonly ServiceRow[]>(`/v1/services?${search}`, signal);
  const served = rows.find(({ endpoints }) => endpoints.local > 0);
  return examplesOf(rows, served && (await podOf(served.service, signal)));
}

async function podOf(
  service: string,
  signal: AbortSignal,
): Promise<{ readonly name: string; readonly service: string } | undefined> {
  const [namespace = ''] = service.split('/');
  const path = apiPath(['endpoints', ...service.split('/')]);
  const rows = await askJson<readonly { readonly pod?: string; readonly isLocal: boolean }[]>(path, signal);
  const pod = rows.find(({ isLocal, pod: name }) => isLocal && name !== undefined)?.pod;
  return pod === undefined ? undefined : { name: `${namespace}/${pod}`, service };
}
