/**
 * Asks the API server for a Service that the proxy does not watch: headless ones, ExternalNames, those of another proxy. A
 * proxy may list Services and not get one, so it lists those of one name.
 */
import { unservedFor } from '../../explain/unserved.ts';
import type { UnservedService } from '../../explain/subject.ts';
import type { ObjectKey } from '../../model/objects.ts';
import { projectService } from '../../model/project/service.ts';
import type { ApiClient } from '../../sources/api/client.ts';
import { ownField, printMessage } from '../../text/cursor.ts';

const TIMEOUT_MS = 3000;
/** One Service has at most 1.5 MiB in etcd. */
const MOST_BYTES = 4 * 1024 * 1024;

/** `undefined`: there is none, or it is served. Rejects where the server does not answer. */
export async function askForService(
  client: Pick<ApiClient, 'get' | 'failureOf'>,
  service: ObjectKey,
): Promise<UnservedService | undefined> {
  const [namespace = '', name = ''] = service.split('/');
  const response = await client.get(
    `/api/v1/namespaces/${encodeURIComponent(namespace)}/services`,
    { fieldSelector: `metadata.name=${name}` },
    { signal: AbortSignal.timeout(TIMEOUT_MS) },
  );
  if (response.status !== 200) throw await client.failureOf(response, `Service ${service}`);
  const items = ownField(JSON.parse(await readText(response.body)), 'items');
  const [raw] = Array.isArray(items) ? (items as readonly unknown[]) : [];
  if (raw === undefined) return undefined;
  const projection = projectService(raw);
  if (projection.kind === 'ignored') return unservedFor(projection.reason);
  if (projection.kind === 'object') return undefined;
  return unservedFor(projection.problems.map(printMessage).join('; '));
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error('the API server answers with more than one Service can have');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
