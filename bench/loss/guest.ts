/** The program inside the guest, whose kernel has IPVS: prints one line of JSON for each scenario. */
import { fileURLToPath } from 'node:url';
import { GUEST_MODES, nameOf, scenariosOf } from './messages.ts';
import { runInLab } from './run.ts';

const PROGRAM = [process.execPath, fileURLToPath(new URL('./junction.js', import.meta.url))];
const [held = '', only = '', ...paths] = process.argv.slice(2);
const kubeProxies = [undefined, ...paths];

for (const scenario of scenariosOf(GUEST_MODES, ['restart', 'kill', 'flush']).filter((each) =>
  nameOf(each).includes(only),
)) {
  for (const kubeProxy of kubeProxies) {
    // One emulated processor has to do the work of seven hosts.
    const options = {
      held: Number(held),
      dialers: 3,
      restMs: 100,
      patienceMs: 4000,
      beforeMs: 2000,
      connections: 500,
      services: 0,
    };
    const result = await runInLab({ program: PROGRAM, kubeProxy, ...options }, scenario);
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
}
process.exit(0);
