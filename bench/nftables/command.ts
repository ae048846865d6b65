/** `npm run bench -- nftables`: nftables mode at several sizes, beside the same as chains through `nft -f`. */
import { fileURLToPath } from 'node:url';
import { countsOption, numberOption, refuseUnknown } from '../arguments.ts';
import type { Sizes } from './messages.ts';
import { compareProxies } from './proxies.ts';
import { measureAll } from './plan.ts';
import { printReport } from './report.ts';

const OPTIONS = ['--sizes', '--endpoints', '--chains', '--processes', '--samples', '--repetitions'];
const PROGRAM = fileURLToPath(new URL('bench-nftables-node.js', import.meta.url));

export async function nftablesCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, OPTIONS);
  const repetitions = numberOption(args, '--repetitions', 3);
  const endpoints = numberOption(args, '--endpoints', 10);
  const around = sized(countsOption(args, '--processes', '1000,10000'), 3);
  const results = await measureAll({
    program: PROGRAM,
    sizes: sized(countsOption(args, '--sizes', '300,3000,10000,30000'), endpoints),
    chainSizes: sized(countsOption(args, '--chains', '1000,3000'), 3),
    samples: numberOption(args, '--samples', 3000),
    repetitions,
  });
  process.stdout.write(`${printReport(results)}\n`);
  process.stdout.write(
    await compareProxies({
      sizes: around,
      repetitions: repetitions,
      kubeProxy: process.env['KUBE_PROXY'],
    }),
  );
}

function sized(counts: readonly number[], endpoints: number): readonly Sizes[] {
  return counts.map((services) => ({ services, endpoints }));
}
