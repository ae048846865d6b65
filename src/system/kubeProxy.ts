/** Other service proxies on this node: processes of kube-proxy, and the mode that a proxy's metrics page names. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { attempt } from '../errors.ts';
import { httpGet } from './httpGet.ts';

const NAME = 'kube-proxy';
const ANSWER_LIMIT_MS = 2000;
const MOST_TEXT = 1000;

/** `pid 123 (/usr/local/bin/kube-proxy --config=…)`; those of other network namespaces do not count. */
export function findKubeProxyProcesses(proc = '/proc', name = NAME): readonly string[] {
  const link = (pid: string): string | undefined => attempt(() => readlinkSync(`${proc}/${pid}/ns/net`));
  const text = (pid: string, file: string): string =>
    attempt(() => readFileSync(`${proc}/${pid}/${file}`, 'utf8')) ?? '';
  const own = link('self');
  return readdirSync(proc)
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => text(pid, 'comm').trim() === name && link(pid) === own)
    .map((pid) => `pid ${pid} (${text(pid, 'cmdline').replaceAll('\0', ' ').trim().slice(0, 300)})`);
}

/** The mode of a service proxy that runs here: kube-proxy and Junction both serve `/proxyMode`. `undefined`: none does. */
export async function runningMode(metricsBindAddress: string): Promise<string | undefined> {
  if (metricsBindAddress === '') return undefined;
  const address = localAddress(metricsBindAddress);
  const answer = await httpGet(`http://${address}/proxyMode`, ANSWER_LIMIT_MS);
  return answer?.status === 200 ? answer.text.slice(0, MOST_TEXT).trim() : undefined;
}

/** Where what listens at an address is reached from this node. */
export function localAddress(bindAddress: string): string {
  return bindAddress.replace(/^(0\.0\.0\.0|\[::\]|)(?=:\d+$)/, '127.0.0.1');
}
