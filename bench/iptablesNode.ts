/** iptables mode in a network namespace that was made for it: netlink sockets belong to the namespace of their process. */
import { kernelTimes, type KernelTask } from './iptables.ts';

const times = await kernelTimes(JSON.parse(process.argv[2] ?? '{}') as KernelTask);
process.stdout.write(`${JSON.stringify(times)}\n`);
