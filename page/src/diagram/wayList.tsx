/** The path as text: every frontend, who gets what there, and the endpoints. For narrow windows and screen readers. */
import { fateOf, frontendWords, sourceWords } from '../../../src/explain/serviceWords.ts';
import type { ServicePortExplanation } from '../../../src/explain/types.ts';
import { packetPath } from '../address.ts';
import type { Box, Graph } from './graph.ts';
import { groupBy } from './groupBy.ts';
import { packetQuestion } from './questions.ts';

interface WayListProps {
  readonly port: ServicePortExplanation;
  readonly graph: Graph;
  readonly onChoose: (box: Box) => void;
}

export function WayList({ port, graph, onChoose }: WayListProps) {
  const frontends = [...groupBy(port.packets, frontendWords)];
  const more = graph.boxes.find(({ key }) => key === 'frontend more');
  return (
    <div class="way-list">
      {frontends.map(([words, packets]) => (
        <section key={words} class="way-frontend">
          <h3>
            {words} <span class="quiet">{packets[0]?.frontend?.policy}</span>
          </h3>
          <dl>
            {packets.map((packet) => (
              <div key={packet.packet.source}>
                <dt class={`source-${packet.source.class}`}>{sourceWords(packet, packets)}</dt>
                <dd class={packet.verdict === 'forwarded' ? undefined : 'is-stopped'}>
                  {fateOf(packet)}{' '}
                  <a
                    class="ask"
                    href={packetPath(packetQuestion(packet))}
                    aria-label={`Ask about the packet from ${sourceWords(packet, packets)} to ${words}`}
                  >
                    packet
                  </a>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      {more && (
        <p class="quiet">
          {more.title}, {more.lines.join(' ')}
        </p>
      )}
      <section class="way-endpoints">
        <h3>Endpoints</h3>
        <ul>
          {graph.boxes
            .filter(({ column }) => column === 4)
            .map((box) => (
              <li key={box.key} class={`depth-${Math.min(3, box.depth ?? 0)}`}>
                <EndpointLine box={box} onChoose={onChoose} />
              </li>
            ))}
        </ul>
      </section>
    </div>
  );
}

function EndpointLine({ box, onChoose }: { readonly box: Box } & Pick<WayListProps, 'onChoose'>) {
  const { kind, title, lines, shares = [], isOpen, isLeftOut } = box;
  const words = (
    <>
      <span class="way-name">{title}</span>
      <span class="quiet">{lines.join(', ')}</span>
      <span class="way-share">
        {isLeftOut === true ? 'left out' : shares.map(({ text }) => text).join(' · ')}
      </span>
    </>
  );
  if (kind !== 'group')
    return <div class={isLeftOut === true ? 'way-line is-left-out' : 'way-line'}>{words}</div>;
  return (
    <button type="button" class="way-line" aria-expanded={isOpen === true} onClick={() => onChoose(box)}>
      {words}
    </button>
  );
}
