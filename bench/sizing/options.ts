/** Options of benchmarks that start a whole daemon beside a generated cluster. */
import { BadArgument, numberOption } from '../arguments.ts';
import { type ClusterSizes, MODES, type SizingMode } from './messages.ts';

/** In MiB, as Node has them; 0: Node's own. The image sets the first. */
export function nodeOptions(args: readonly string[]): string {
  return Object.entries({ 'semi-space': 2, 'old-space': 0 })
    .map(([name, normal]) => ({ name, size: numberOption(args, `--${name}`, normal) }))
    .flatMap(({ name, size }) => (size === 0 ? [] : [`--max-${name}-size=${size}`]))
    .join(' ');
}

export function modesOf(text: string): readonly SizingMode[] {
  return text.split(',').map((each) => {
    const mode = MODES.find((known) => known === each);
    if (mode === undefined) throw new BadArgument(`--modes ${each}: expected some of ${MODES.join(',')}`);
    return mode;
  });
}

export function sizesOf(text: string): readonly ClusterSizes[] {
  return text.split(',').map((each) => {
    const [, services, endpoints, dual] = /^(\d+)x(\d+)(d?)$/.exec(each) ?? [];
    if (services === undefined)
      throw new BadArgument(`--sizes ${each}: expected SERVICESxENDPOINTS, with d behind it for dual-stack`);
    return { services: Number(services), endpoints: Number(endpoints), isDualStack: dual === 'd' };
  });
}
