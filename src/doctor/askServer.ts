/** Asks the API server one small question, as the proxy would: whether it answers, and what its clock says. */
import type { ValidConfig } from '../config/effective.ts';
import { isJunctionError, type JunctionError } from '../errors.ts';
import { ApiClient } from '../sources/api/client.ts';
import { loadAccess } from '../sources/api/credentials/load.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import type { ServerLook } from './apiServer.ts';

/** Every user may ask for it; one who may not gets an answer all the same. */
const PATH = '/readyz';
const isRefusal = (status: number): boolean => status >= 500 || status === 401;
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
    if (isRefusal(response.status))
      return { server, at, failure: failureOf(await client.failureOf(response, PATH)) };
    for await (const _ of response.body);
    return { server, at, date: response.date === undefined ? undefined : Date.parse(response.date) };
  } catch (error) {
    if (!signal.aborted && !isJunctionError(error)) throw error;
    if (isJunctionError(error)) return { server, at: Date.now(), failure: failureOf(error) };
    const failure = {
      message: `no answer within ${LIMIT_MS / 1000} s`,
      hint: `curl -k ${server}/livez from this node: the network or a firewall, where it gets no answer`,
    };
    return { server, at: Date.now(), failure };
  } finally {
    await client?.close();
  }
}

/** The proxy would try again, and its hint says so. */
function failureOf({ message, hint }: JunctionError): ServerLook['failure'] {
  return { message, hint: hint.replace(/^Junction tries again\. /, '') };
}
