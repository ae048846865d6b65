/** `npm run bench`: prints what docs/benchmarks.md quotes. */
import { existsSync } from 'node:fs';
import { budgetsCommand } from './budgets/command.ts';
import { BAD_ARGUMENT, BadArgument } from './arguments.ts';
import { hostileCommand } from './hostile/command.ts';
import { iptablesCommand } from './iptablesCommand.ts';
import { ipvsCommand } from './ipvs/command.ts';
import { nftablesCommand } from './nftables/command.ts';
import { sizingCommand } from './sizing/command.ts';

const HELP = `npm run bench [-- [--node 24] [WHICH] OPTIONS]

--node LINE|VERSION: on another Node, which is fetched; releases bring 24

iptables (the default): iptables mode at several sizes, into a real kernel
  --sizes 300,3000,10000   services; each has three endpoints
  --variant nft|legacy     which iptables (default nft)
  --rewrite-up-to 3000     largest size at which everything is also written in one restore, the slow baseline
                           (10,000 services take several minutes in the nft variant)

nftables: nftables mode at several sizes, into a real kernel; beside it the same as chains through nft -f, what the first
packet of a connection pays, and whole proxies as processes. KUBE_PROXY=/path/to/kube-proxy puts one beside Junction's
  --sizes 300,3000,10000,30000   services
  --endpoints 10                 of each service
  --chains 1000,3000             services, with three endpoints each, that are also written as chains
  --processes 1000,10000         services, with three endpoints each, around whole proxies
  --samples 3000                 connections of each kind
  --repetitions 3                of everything

ipvs: IPVS mode beside ipset, ipvsadm and ip, inside User-mode Linux
  --sizes 1000,10000       services
  --endpoints 3            of each service
  --repetitions 5          of everything

hostile: one object of the API server's size limit beside small services, in every mode (ipvs inside User-mode Linux)
  --modes nftables,iptables-nft,iptables-legacy,ipvs
  --objects external-ips,…  which large objects (default all of them)
  --services 300           small services beside it
  --changes 3              endpoint changes of the large service
  --profile FOLDER         CPU profiles of the daemon go there
  --guest                  inside User-mode Linux (nftables is not there): how much slower that machine is
  --json                   every run as a line of JSON

sizing: memory that the kernel charges to a container of Junction, and its CPU time, by mode and cluster size
  --modes nftables,iptables-nft,iptables-legacy   ipvs too, inside User-mode Linux
  --sizes 100x3,1000x3,…   services x endpoints of each; with d behind it in both address families, like 10000x3d
  --limit 0                MiB that the pod may have (0: no limit)
  --rates 1,10,100         endpoint changes a second
  --seconds 10             of each rate
  --settle 10              seconds of rest after each step
  --semi-space 2           MiB: of Node's young generation, as the image sets it (0: Node's own)
  --old-space 0            MiB: of Node's old generation (0: Node's own)
  --guest                  inside User-mode Linux (nftables is not there), with cgroups of the second version
  --json                   every run as a line of JSON

budgets: whole daemons from outside, this checkout's and another one's in turns: start, one change, verification, restart,
memory, with the budgets beside the numbers
  --baseline DIR|COMMIT    a built checkout, or a commit of this one, which is built first (default: none)
  --clusters iptables-nft:300x3,iptables-nft:10000x3,nftables:10000x3,nftables:30000x10   (none: the program's start alone)
  --repetitions 1          of everything
  --changes 20             while all is at rest
  --settle 10              seconds before memory is read
  --starts 9               of the program itself (0: none)
  --content-types json,protobuf   what the API server is asked for; the first is compared with the baseline
  --node-options TEXT      of Node (default --max-semi-space-size=2, as the image sets it)
  --json                   all numbers

loss: connections lost by a restart, kill -9, a flush, an upgrade and a mode switch, in every mode; real packets, the whole
daemon. KUBE_PROXY=/path/to/kube-proxy puts one beside Junction's
  --held 60                connections that are open over each event
  --where both|lab|guest   on this machine's kernel, or in User-mode Linux, whose kernel has IPVS
  --connections 5000       that are opened in each scenario
  --services 500           that a start writes besides those of the traffic; not in the guest
  --older PATH             dist/junction.js of an older version, for an upgrade
  --only TEXT              only scenarios whose name has it, like "iptables-nft to nftables"
`;

async function main([first = 'iptables', ...others]: readonly string[]): Promise<void> {
  const isNamed = !first.startsWith('--');
  const name = isNamed ? first : 'iptables';
  const args = isNamed ? others : [first, ...others];
  if (args.includes('--help')) process.stdout.write(HELP);
  else if (name === 'iptables') await iptablesCommand(args);
  else if (name === 'nftables') await nftablesCommand(args);
  else if (name === 'ipvs') await ipvsCommand(args);
  else if (name === 'sizing') await sizingCommand(args);
  else if (name === 'hostile') await hostileCommand(args);
  else if (name === 'budgets') await budgetsCommand(args);
  else if (name === 'loss') await loss(args);
  else throw new BadArgument(`there is no benchmark ${name}; --help lists them`);
}

/** Apart, because its clients and its daemon are with the tests, which an image lacks. */
async function loss(args: readonly string[]): Promise<void> {
  const command = new URL('bench-loss.js', import.meta.url);
  if (!existsSync(command))
    throw new Error('this benchmark needs a whole checkout: a part of it is with the tests');
  const { lossCommand } = (await import(command.href)) as typeof import('./loss/command.ts');
  await lossCommand(args);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof BadArgument ? BAD_ARGUMENT : 1;
}
