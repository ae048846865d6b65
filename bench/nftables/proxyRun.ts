/** One proxy in the network namespace of this process: an API server beside it, a client and endpoints on wires. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dialler, ProxyEnvironment } from './environment.ts';
import { probeEndpoint, type ProxyRun, type ProxyTask } from './messages.ts';
import { ProxyProcess, writeConfig } from './proxyProcess.ts';

/** After which nothing of a start or a change goes on, and the shortest time between two syncs is over. */
const REST_MS = 3000;
const PATIENCE_MS = 600_000;

async function main({ command, sizes, changes }: ProxyTask): Promise<ProxyRun> {
  const environment = await ProxyEnvironment.open(sizes);
  let proxy: ProxyProcess | undefined;
  try {
    const dialler = environment.dial();
    proxy = new ProxyProcess(command, writeConfig(environment.folder, environment.url));
    const measured = measure(proxy, environment, dialler, changes);
    return await Promise.race([measured, proxy.failed, tooLate()]);
  } finally {
    proxy?.end();
    environment.close();
  }
}

async function measure(
  proxy: ProxyProcess,
  environment: ProxyEnvironment,
  dialler: Dialler,
  changes: number,
): Promise<ProxyRun> {
  const first = await dialler.reached(probeEndpoint(0));
  const forwardingCpuMs = proxy.cpuMs();
  await sleep(REST_MS);
  const changeMs: number[] = [];
  const changeCpuMs: number[] = [];
  for (let change = 1; change <= changes; change++) {
    const before = proxy.cpuMs();
    const replaced = environment.replace(probeEndpoint(change));
    const { at } = await dialler.reached(probeEndpoint(change));
    changeMs.push(at - (await replaced).at);
    await sleep(REST_MS);
    changeCpuMs.push(proxy.cpuMs() - before);
  }
  const forwardingMs = first.at - proxy.startedAt;
  return { forwardingMs, forwardingCpuMs, resident: proxy.resident(), changeMs, changeCpuMs };
}

async function tooLate(): Promise<never> {
  await sleep(PATIENCE_MS, undefined, { ref: false });
  throw new Error('the proxy does not forward');
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as ProxyTask))}\n`);
