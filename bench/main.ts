/** `npm run bench`: prints what docs/benchmarks.md quotes. */
import { apiCommand } from './api/command.ts';
import { iptablesCommand } from './iptablesCommand.ts';

const HELP = `npm run bench [-- [WHICH] OPTIONS]

iptables (the default): iptables mode at several sizes, into a real kernel
  --sizes 300,3000,10000   services; each has three endpoints
  --variant nft|legacy     which iptables (default nft)
  --rewrite-up-to 3000     largest size at which everything is also written in one restore, the slow baseline
                           (10,000 services take several minutes in the nft variant)

api: from an API server to the rules' text, in a process of its own; nothing is written into the kernel
  --services 10000         how many
  --endpoints 10           of each service
  --churn-seconds 60       how long EndpointSlices change
  --rate 100               changes a second
  --replace 0              services a second that are deleted, each for a new one of another name
  --min-sync-period 0      milliseconds between two syncs
  --pages                  the server does not stream lists
`;

async function main([first = 'iptables', ...others]: readonly string[]): Promise<void> {
  const isNamed = !first.startsWith('--');
  const name = isNamed ? first : 'iptables';
  const args = isNamed ? others : [first, ...others];
  if (args.includes('--help')) process.stdout.write(HELP);
  else if (name === 'iptables') await iptablesCommand(args);
  else if (name === 'api') await apiCommand(args);
  else throw new Error(`there is no benchmark ${name}; --help lists them`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
