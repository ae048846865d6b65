/** Asks the running proxy. */
import { SERVICE_COLUMNS } from '../explain/serviceTable.ts';
import type { Status } from '../explain/status.ts';
import type { EndpointRow, PacketExplanation, ServiceExplanation, ServiceRow } from '../explain/types.ts';
import type { Answerer } from './answers.ts';
import { ByteTableReader } from './byteTable.ts';
import { apiPath, askChunks, askJson } from './localApi.ts';
import type { QuestionSource } from './questionSource.ts';

export function liveAnswers(source: QuestionSource & { readonly kind: 'live' }): Answerer {
  const { socket } = source;
  return {
    source,
    packets: ({ from, to, at }) =>
      askJson<readonly PacketExplanation[]>(socket, apiPath(['explain'], { from, to, at: timeText(at) })),
    service: ({ service, at }) => {
      const [name, port] = splitPort(service);
      return askJson<ServiceExplanation>(
        socket,
        apiPath(['explain', ...name.split('/')], { port, at: timeText(at) }),
      );
    },
    services: (namespace) =>
      askJson<readonly ServiceRow[]>(
        socket,
        apiPath(['services'], { namespace: namespace === '' ? undefined : namespace }),
      ),
    serviceTable: async (namespace) => {
      const of = namespace === '' ? undefined : namespace;
      const path = apiPath(['services'], { format: 'table', namespace: of });
      const reader = new ByteTableReader(SERVICE_COLUMNS.length);
      let isFirst = true;
      for await (const chunk of askChunks(socket, path)) {
        // The first line has the titles.
        reader.add(isFirst ? chunk.subarray(chunk.indexOf('\n') + 1) : chunk);
        isFirst = false;
      }
      return reader.finish();
    },
    endpoints: (service) =>
      askJson<readonly EndpointRow[]>(socket, apiPath(['endpoints', ...service.split('/')])),
    status: () => askJson<Status>(socket, apiPath(['status'])),
  };
}

/** `shop/web:53/udp`: the port may say its protocol. */
function splitPort(text: string): readonly [name: string, port: string | undefined] {
  const colon = text.indexOf(':');
  return colon < 0 ? [text, undefined] : [text.slice(0, colon), text.slice(colon + 1)];
}

function timeText(at: number | undefined): string | undefined {
  return at === undefined ? undefined : new Date(at).toISOString();
}
