/** The page beside the demo: on this machine's loopback, although the cluster is in networks of its own. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMANDS, commandFlags } from '../../src/cli/commands.ts';
import { openPageSource } from '../../src/cli/ui/pageSource.ts';
import { relay } from '../../src/cli/ui/relay.ts';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { attempt, messageOf } from '../../src/errors.ts';
import { createLog } from '../../src/log/log.ts';
import { parseUiAddress } from '../../src/ui/address.ts';
import { servePage } from '../../src/ui/serve.ts';
import type { DemoOptions } from './options.ts';
import { junctionArguments } from './settings.ts';

/** Beside the ports of kube-proxy; the next ones where another program, or another demo, has it. */
const FIRST_PORT = 10_270;
const PORTS = 10;
const FOLDER = 'junction-demo-page-';

interface DemoPage {
  /** Unset where it cannot be served. */
  readonly link: string | undefined;
  /** For people: the link, or why there is none. */
  readonly text: string;
  stop(): Promise<void>;
}

export interface LivePage extends DemoPage {
  /** Where Junction is to answer. The file system is the same for all hosts. */
  readonly socket: string;
}

type Api = Parameters<typeof servePage>[0]['api'];

/** Answered by Junction on node1, from the moment on at which it runs. */
export async function livePage(): Promise<LivePage> {
  removeStale();
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER}${process.pid}-`));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const socket = join(folder, 'junction.sock');
  const page = await serve(relay(socket, whileStarting));
  return {
    ...page,
    socket,
    stop: async () => {
      await page.stop();
      remove();
    },
  };
}

/** Where the cluster is in a kernel of its own: what node1 plans, from the same files. */
export async function planPage(options: DemoOptions): Promise<DemoPage> {
  const ui = COMMANDS.find(({ name }) => name === 'ui');
  const words = junctionArguments(options);
  const names = new Set((ui ? commandFlags(ui) : []).map(({ name }) => `--${name}`));
  const parsed = parseCommandLine(
    words.filter((word) => names.has(word.split('=')[0] ?? '') && !word.startsWith('--api-socket')),
    ui && commandFlags(ui),
  );
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  // What is wrong with a file is printed by the demo in the guest.
  const silent = { out: () => undefined, err: () => undefined, painted: () => undefined };
  const { api, close } = await openPageSource({ kind: 'manifests' }, parsed.value, silent, LOG);
  const page = await serve(api);
  return {
    ...page,
    text:
      page.link === undefined
        ? page.text
        : `${page.text} (what node1 plans: its kernel is the guest's, where the page cannot look)`,
    stop: async () => {
      await page.stop();
      await close();
    },
  };
}

const LOG = createLog({ verbosity: 0, format: 'text', write: () => undefined });

async function serve(api: Api): Promise<DemoPage> {
  let problem: unknown;
  for (let port = FIRST_PORT; port < FIRST_PORT + PORTS; port++) {
    const address = parseUiAddress(`127.0.0.1:${port}`);
    if (!address) continue;
    try {
      const server = await servePage({ address, api, log: LOG });
      return { ...server, text: `The page: ${server.link}` };
    } catch (error) {
      problem = error;
    }
  }
  const text = `The page cannot be shown: ${messageOf(problem)}`;
  return { link: undefined, text, stop: () => Promise.resolve() };
}

function whileStarting() {
  return {
    code: 'starting',
    message: 'Junction is starting on node1',
    hint: 'It takes a few seconds; this page tries again by itself.',
  };
}

/** Of a demo that was killed. */
function removeStale(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = new RegExp(`^${FOLDER}(\\d+)-`).exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`))
      attempt(() => rmSync(join(tmpdir(), name), { recursive: true, force: true }));
  }
}
