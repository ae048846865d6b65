/** `npm run bench -- nftables`: nftables mode at several sizes, beside the same as chains through `nft -f`. */
import { fileURLToPath } from 'node:url';
import { numberOption, option } from '../arguments.ts';
import type { Sizes } from './messages.ts';
import { compareProxies } from './proxies.ts';
import { measureAll } from './plan.ts';
import { printReport } from './report.ts';

const PROGRAM = fileURLToPath(new URL('bench-nftables-node.js', import.meta.url));

export async function nftablesCommand(args: readonly string[]): Promise<void> {
  const repetitions = numberOption(args, '--repetitions', 3);
  const results = await measureAll({
    program: PROGRAM,
    sizes: sizesOf(option(args, '--sizes', '300,3000,10000,30000'), numberOption(args, '--endpoints', 10)),
    chainSizes: sizesOf(option(args, '--chains', '1000,3000'), 3),
    samples: numberOption(args, '--samples', 3000),
    repetitions,
  });
  process.stdout.write(`${printReport(results)}\n`);
  process.stdout.write(
    await compareProxies({
      sizes: sizesOf(option(args, '--processes', '1000,10000'), 3),
      repetitions: repetitions,
      kubeProxy: process.env['KUBE_PROXY'],
    }),
  );
}

function sizesOf(text: string, endpoints: number): readonly Sizes[] {
  return text
    .split(',')
    .filter((each) => each !== '' && each !== '0')
    .map((each) => ({ services: Number(each), endpoints }));
}
