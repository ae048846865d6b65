/** The whole table, read as it comes, in slices that leave the browser its frames. */
import { ask } from '../../api.ts';
import { lineNormalizer, readLine, type ServiceLine } from './line.ts';

/** A frame has 16 ms, and drawing takes some of them. */
const SLICE_MS = 8;
const FIRST_LINES = 300;

/** By name. `onFirst`: enough to fill a screen is here, and more comes. */
export async function loadLines(
  signal: AbortSignal,
  onFirst: (lines: readonly ServiceLine[]) => void,
): Promise<readonly ServiceLine[]> {
  const response = await ask('/v1/services?format=table', signal);
  if (!response.body) throw new Error('the answer has no body');
  const chunks = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const lines: ServiceLine[] = [];
  let normalize: ((line: string) => string) | undefined;
  let isFirstShown = false;
  let rest = '';
  let sliceEnd = performance.now() + SLICE_MS;
  for (;;) {
    const { done, value } = await chunks.read();
    if (done) break;
    const complete = (rest + value).split('\n');
    rest = complete.pop() ?? '';
    if (!normalize && complete.length > 0) normalize = lineNormalizer(complete.shift() ?? '');
    for (const line of complete) {
      if (normalize && line !== '') lines.push(readLine(normalize(line)));
      if (performance.now() < sliceEnd) continue;
      await nextTask();
      sliceEnd = performance.now() + SLICE_MS;
    }
    if (isFirstShown || lines.length < FIRST_LINES) continue;
    isFirstShown = true;
    onFirst(lines.slice());
  }
  const sorted = inOrder(lines);
  await nextTask();
  return sorted;
}

/** The proxy sends them so. */
function inOrder(lines: ServiceLine[]): readonly ServiceLine[] {
  const isSorted = lines.every(
    (line, index) => index === 0 || (lines[index - 1]?.service ?? '') < line.service,
  );
  return isSorted ? lines : lines.sort((a, b) => (a.service < b.service ? -1 : 1));
}

/** After what the browser has to do meanwhile. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
