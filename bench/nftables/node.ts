/** The program inside a network namespace that was made for it. It does one task and prints a line of JSON. */
import { run } from '../../src/system/processes.ts';
import { measureChains } from './chains.ts';
import { answer, dial } from './dial.ts';
import type { Task } from './messages.ts';
import { measureOurs } from './ours.ts';
import { measurePackets } from './packets.ts';

async function perform(task: Task): Promise<unknown> {
  switch (task.kind) {
    case 'own':
      return measureOurs(task);
    case 'chains':
      return measureChains(task);
    case 'packets':
      return measurePackets(task);
    case 'answer':
      return answer(task);
    case 'dial':
      return dial(task);
  }
}

await run(['ip', 'link', 'set', 'lo', 'up']);
process.stdout.write(`${JSON.stringify(await perform(JSON.parse(process.argv[2] ?? '{}') as Task))}\n`);
