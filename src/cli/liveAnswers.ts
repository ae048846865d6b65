/** Asks the running proxy. */
import type { Status } from '../explain/status.ts';
import type { EndpointRow, PacketExplanation, ServiceExplanation, ServiceRow } from '../explain/types.ts';
import type { Answerer, AskedWait } from './answers.ts';
import { apiPath, askJson, ANSWER_LIMIT_MS } from './localApi.ts';
import type { QuestionSource } from './questionSource.ts';

export function liveAnswers(source: QuestionSource & { readonly kind: 'live' }): Answerer {
  const { socket } = source;
  return {
    source,
    packets: ({ from, to }) =>
      askJson<readonly PacketExplanation[]>(socket, apiPath(['explain'], { from, to })),
    service: (service) => {
      const [name, port] = splitPort(service);
      return askJson<ServiceExplanation>(socket, apiPath(['explain', ...name.split('/')], { port }));
    },
    services: (namespace) =>
      askJson<readonly ServiceRow[]>(
        socket,
        apiPath(['services'], { namespace: namespace === '' ? undefined : namespace }),
      ),
    endpoints: (service) =>
      askJson<readonly EndpointRow[]>(socket, apiPath(['endpoints', ...service.split('/')])),
    status: (wait) => (wait ? waitedStatus(socket, wait) : askJson<Status>(socket, apiPath(['status']))),
  };
}

const GATEWAY_TIMEOUT = 504;

function waitedStatus(socket: string, { timeoutMs, service, resourceVersion }: AskedWait): Promise<Status> {
  const path = apiPath(['status'], {
    wait: 'applied',
    timeout: `${timeoutMs}ms`,
    service,
    resourceVersion,
  });
  return askJson<Status>(socket, path, { timeoutMs: timeoutMs + ANSWER_LIMIT_MS, accepts: GATEWAY_TIMEOUT });
}

/** `shop/web:53/udp`: the port may say its protocol. */
function splitPort(text: string): readonly [name: string, port: string | undefined] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
}
