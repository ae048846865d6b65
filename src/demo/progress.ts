/** One line per step: on a terminal it is drawn over until the step is done. */
import { painter } from '../cli/table.ts';

export async function step<T>(
  label: string,
  work: (say: (detail: string) => void) => Promise<T>,
  describe: (result: T) => string = () => label,
): Promise<T> {
  const { stdout } = process;
  const paint = painter(stdout);
  const begun = performance.now();
  const draw = (text: string): void => void (stdout.isTTY && stdout.write(`\r\u001b[K${text}`));
  const say = (detail: string): void => draw(`${paint('cyan', '…')} ${label}: ${detail}`);
  draw(`${paint('cyan', '…')} ${label}`);
  try {
    const result = await work(say);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    draw('');
    stdout.write(`${paint('green', '✓')} ${describe(result)} ${paint('dim', `(${seconds} s)`)}\n`);
    return result;
  } catch (error) {
    draw('');
    stdout.write(`${paint('red', '✗')} ${label}\n`);
    throw error;
  }
}
