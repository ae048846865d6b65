/** Whether a kube-proxy runs beside us: by its process, where it can be seen, and by its ports. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { attempt } from '../errors.ts';
import type { Log } from '../log/log.ts';
import { httpGet } from '../system/httpGet.ts';

/** A look at all processes costs some ten microseconds for each. */
const INTERVAL_MS = 5 * 60_000;

/** Warns at the start, and when one starts later. */
export class KubeProxyWatch {
  readonly #log: Pick<Log, 'warn'>;
  readonly #find: typeof findKubeProxyProcesses;
  #known = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Pick<Log, 'warn'>, find = findKubeProxyProcesses) {
    this.#log = log;
    this.#find = find;
  }

  /** Before our own ports are open. */
  async start(intervalMs = INTERVAL_MS): Promise<void> {
    this.#look(await findKubeProxyPorts());
    this.#timer = setInterval(() => this.#look(), intervalMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(ports: readonly string[] = []): void {
    const processes = this.#find();
    const isKnown = processes.join() === this.#known;
    this.#known = processes.join();
    const signs = [...(isKnown ? [] : processes), ...ports];
    if (signs.length === 0) return;
    this.#log.warn(
      "kube-proxy runs on this node too; both write rules for the same services, and undo each other's work",
      {
        signs: signs.join('; '),
        whatToDo:
          'Stop kube-proxy here: kubectl label node NODE service-proxy=junction, see docs/deployment.md.',
      },
    );
  }
}

const NAME = 'kube-proxy';
/** kube-proxy's defaults, whatever ours are. */
const HEALTH_URL = 'http://127.0.0.1:10256/healthz';
const MODE_URL = 'http://127.0.0.1:10249/proxyMode';
const ANSWER_LIMIT_MS = 1000;
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

/** To be asked before our own ports are open. */
async function findKubeProxyPorts(): Promise<readonly string[]> {
  const [mode, health] = await Promise.all([get(MODE_URL), get(HEALTH_URL)]);
  const isMode = /^(iptables|ipvs|nftables)\s*$/.test(mode.text);
  return [
    ...(isMode ? [`${MODE_URL} answers ${mode.text.trim()}`] : []),
    ...(health.text.includes('lastUpdated') ? [`${HEALTH_URL} answers`] : []),
  ];
}

/** The mode of a service proxy that runs here: kube-proxy and Junction both serve `/proxyMode`. `undefined`: none does. */
export async function runningMode(metricsBindAddress: string): Promise<string | undefined> {
  if (metricsBindAddress === '') return undefined;
  const address = localAddress(metricsBindAddress);
  const { ok, text } = await get(`http://${address}/proxyMode`, 2 * ANSWER_LIMIT_MS);
  return ok ? text.trim() : undefined;
}

/** Where what listens at an address is reached from this node. */
export function localAddress(bindAddress: string): string {
  return bindAddress.replace(/^(0\.0\.0\.0|\[::\]|)(?=:\d+$)/, '127.0.0.1');
}

async function get(
  url: string,
  limitMs = ANSWER_LIMIT_MS,
): Promise<{ readonly ok: boolean; readonly text: string }> {
  const answer = await httpGet(url, limitMs);
  return { ok: answer?.status === 200, text: (answer?.text ?? '').slice(0, MOST_TEXT) };
}
