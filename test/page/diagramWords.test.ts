/** What the page says about a service is what `explain` says. */
import { describe, expect, test } from 'vitest';
import { captionOf, portCaption } from '../../page/src/diagram/captions.ts';
import { endpointTree, seenBranches } from '../../page/src/diagram/endpointTree.ts';
import { type Box, graphOf } from '../../page/src/diagram/graph.ts';
import { weightsOf } from '../../page/src/diagram/weights.ts';
import { printPacket } from '../../src/explain/print.ts';
import { printService } from '../../src/explain/printService.ts';
import type { ServiceExplanation, ServicePortExplanation } from '../../src/explain/types.ts';
import { explainedExamples } from './support/ports.ts';

const style = { paint: (_: string, text: string): string => text, columns: 10_000, isWide: true };
const examples = await explainedExamples();

/** Everything that `explain` prints about a service and its packets, with single spaces. */
function spoken(explanation: ServiceExplanation): string {
  const packets = explanation.ports.flatMap(({ packets: some }) => some);
  const texts = [printService(explanation, style), ...packets.map((packet) => printPacket(packet, style))];
  return texts.join('\n').replaceAll(/ +/g, ' ');
}

function boxesOf(port: ServicePortExplanation): readonly Box[] {
  const seen = seenBranches(endpointTree(port.endpoints), () => true);
  return graphOf(port, seen, weightsOf(port.endpoints)).boxes;
}

describe.each(examples)('$service', (explanation) => {
  const said = spoken(explanation);
  const ports = explanation.ports.map((port) => ({ port, name: `${port.servicePort}, ${port.family}` }));

  test.each(ports)('$name: every sentence is one of explain', ({ port }) => {
    const boxes = boxesOf(port).filter(({ kind }) => kind !== 'group');
    expect(new Set(boxes.map(({ kind }) => kind)).has('source')).toBe(true);
    for (const box of boxes) {
      const { title, aside, lines } = captionOf(box, port);
      if (box.kind !== 'pool') expect(said).toContain(title);
      if (aside !== undefined) expect(said).toContain(aside);
      for (const { text } of lines) for (const part of pieces(box, text)) expect(said).toContain(part);
    }
  });

  test.each(ports)('$name: sources and the state stand there before anything is pointed at', ({ port }) => {
    const { title, aside, lines } = portCaption(port);
    expect(said).toContain(`${title} ${aside ?? ''}`);
    for (const { label, text } of lines) expect(said).toContain(`${label}: ${text}`);
  });
});

/** Of an endpoint's line, the share and whose address it sees stand in two columns of `explain`. */
function pieces({ kind }: Box, text: string): readonly string[] {
  return kind === 'endpoint' && / %, /.test(text) ? text.split(' %, ') : [text];
}

test('a source that is not allowed: the reason, the cure and where it would go', () => {
  const web = examples.find(({ service }) => service === 'shop/web');
  const [port] = web?.ports ?? [];
  const end = port && boxesOf(port).find(({ kind }) => kind === 'end');
  expect(port && end && captionOf(end, port)).toMatchObject({
    title: 'dropped: not in loadBalancerSourceRanges',
    lines: [
      { label: '✗', text: expect.stringContaining('do not contain 198.51.100.1') },
      { label: 'cure', text: expect.stringContaining('kubectl -n shop patch service web') },
      { label: 'if allowed', text: '10.244.1.11:8081 (pod-a, this node), client address kept' },
      {
        label: 'outside → load-balancer IP 203.0.113.10:80',
        text: 'dropped: not in loadBalancerSourceRanges',
      },
    ],
  });
});
