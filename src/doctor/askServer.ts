/** Asks the API server one small question, as the proxy would: whether it answers, and what its clock says. */
import type { ValidConfig } from '../config/effective.ts';
import { isJunctionError } from '../errors.ts';
import { ApiClient } from '../sources/api/client.ts';
import { loadAccess } from '../sources/api/credentials/load.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import type { ServerLook } from './apiServer.ts';

/** Every user may ask for it. */
const PATH = '/version';
const LIMIT_MS = 10_000;

export async function askServer(config: ValidConfig): Promise<ServerLook> {
  const { kubeconfig } = config.clientConnection;
  let server = config.master || kubeconfig;
  let client: ApiClient | undefined;
  const signal = AbortSignal.timeout(LIMIT_MS);
  try {
    const access = await loadAccess({
      kubeconfig,
      master: config.master,
      env: process.env,
      clock: systemClock,
      runPlugin,
    });
    server = access.server.origin;
    const userAgent = `junction/${VERSION} (${process.platform}/${process.arch})`;
    client = new ApiClient({ access, clock: systemClock, userAgent });
    const response = await client.get(PATH, {}, { signal });
    const at = Date.now();
    if (response.status >= 400) return { server, at, failure: await client.failureOf(response, PATH) };
    for await (const _ of response.body);
    return { server, at, date: response.date === undefined ? undefined : Date.parse(response.date) };
  } catch (error) {
    if (!signal.aborted && !isJunctionError(error)) throw error;
    if (isJunctionError(error)) return { server, at: Date.now(), failure: error };
    const failure = {
      message: `no answer within ${LIMIT_MS / 1000} s`,
      hint: `curl -k ${server}/livez from this node: the network or a firewall, where it gets no answer`,
    };
    return { server, at: Date.now(), failure };
  } finally {
    await client?.close();
  }
}
