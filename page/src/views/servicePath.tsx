/** The path drawn, or as text; what is pointed at is said below it. */
import { useMemo, useState } from 'preact/hooks';
import type { ServicePortExplanation } from '../../../src/explain/types.ts';
import { CaptionText } from '../diagram/captionText.tsx';
import { captionOf, portCaption } from '../diagram/captions.ts';
import { Diagram } from '../diagram/diagram.tsx';
import { type EndpointGroup, endpointTree, openAtFirst, seenBranches } from '../diagram/endpointTree.ts';
import { focusOn } from '../diagram/focus.ts';
import { type Box, graphOf } from '../diagram/graph.ts';
import { LEAST_WIDTH } from '../diagram/layout.ts';
import { Legend } from '../diagram/legend.tsx';
import { WayList } from '../diagram/wayList.tsx';
import { weightsOf } from '../diagram/weights.ts';
import { useWidth } from '../parts/useWidth.ts';
import { go } from '../route.ts';
import { serviceAddress } from './servicePorts.ts';
import '../diagram/words.css';

interface PathProps {
  readonly port: ServicePortExplanation;
  readonly address: { readonly service: string; readonly query: URLSearchParams };
  readonly changed: ReadonlySet<string>;
  readonly pointed: Box | undefined;
  readonly onPoint: (box: Box | undefined) => void;
}

const HINT =
  'Point at a box, or go to it by Tab and the arrow keys, to see its way. Enter or a click keeps it.';

export function ServicePath({ port, address, changed, pointed, onPoint }: PathProps) {
  const [ref, width] = useWidth();
  const isNarrow = width > 0 && width < LEAST_WIDTH;
  const isText = address.query.get('as') === 'text';
  const other = serviceAddress(address.service, address.query, { as: isText ? undefined : 'text' });
  const [chosen, setChosen] = useState<string>();
  const { graph, weights, toggle } = useGraph(port);
  const boxAt = (key: string | undefined): Box | undefined => graph.boxes.find((box) => box.key === key);
  // What is pointed at may have another state by now.
  const shown = boxAt(pointed?.key) ?? boxAt(chosen);
  const focus = shown && focusOn(graph, shown.key);
  const choose = (box: Box): void => {
    if (box.kind === 'group') toggle(box);
    else setChosen(chosen === box.key ? undefined : box.key);
  };
  return (
    <section class="card path" aria-labelledby="path-title">
      <div class="card-head">
        <h2 id="path-title">Path</h2>
        {!isNarrow && (
          <button type="button" aria-pressed={isText} onClick={() => go(other, 'replace')}>
            As text
          </button>
        )}
      </div>
      <div
        ref={ref}
        class="path-room"
        // Not when it goes from a box to the links below, which would be gone before they are reached.
        onFocusOut={({ currentTarget, relatedTarget }) => {
          if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) onPoint(undefined);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          setChosen(undefined);
          onPoint(undefined);
        }}
        // Not where the diagram ends: the caption below it has links.
        onPointerLeave={() => onPoint(undefined)}
      >
        {width === 0 ? null : isText || isNarrow ? (
          <WayList port={port} graph={graph} onChoose={choose} />
        ) : (
          <>
            <Diagram
              graph={graph}
              width={width}
              focus={focus}
              chosen={chosen}
              changed={changed}
              onPoint={(key) => onPoint(boxAt(key))}
              onChoose={choose}
            />
            <Legend graph={graph} widths={weights.text} />
            <CaptionText
              words={shown ? captionOf(shown, port) : portCaption(port)}
              hint={shown ? undefined : HINT}
            />
          </>
        )}
      </div>
    </section>
  );
}

/** Which groups somebody opened or closed stays, whatever answers come. */
function useGraph(port: ServicePortExplanation) {
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const tree = useMemo(() => endpointTree(port.endpoints), [port]);
  const atFirst = useMemo(() => openAtFirst(tree), [tree]);
  const weights = useMemo(() => weightsOf(port.endpoints), [port]);
  const graph = useMemo(() => {
    const isOpen = ({ key }: EndpointGroup): boolean => toggled.get(key) ?? atFirst.has(key);
    return graphOf(port, seenBranches(tree, isOpen), weights);
  }, [port, tree, atFirst, weights, toggled]);
  const toggle = ({ key, isOpen }: Box): void => setToggled(new Map(toggled).set(key, isOpen !== true));
  return { graph, weights, toggle };
}
